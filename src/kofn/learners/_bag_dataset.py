"""Data sets of bags whose batches are gathered in one indexing call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from kofn import _require
from kofn.bags import Bags


class Batch(NamedTuple):
    """Some bags of instances.

    Attributes:
        instances: (m, ...) one bag after the other.
        offsets: (b + 1,) bag j is ``instances[offsets[j]:offsets[j + 1]]``.
        labels: (b, ...) of the bags.
        share: the batch's part of its step's bags.
    """

    instances: Tensor
    offsets: Tensor
    labels: Tensor
    share: float = 1.0


class Draw(NamedTuple):
    """What a batch is made of: positions of bags, and its share of the step."""

    items: Tensor
    share: float = 1.0


class BagDataset(Dataset[Batch]):
    """Bags with their labels; a batch of any size costs one indexing call.

    Args:
        instances: (n, ...) tensor or array, of any dtype; not copied.
        bags: positions of the bags' instances; bags may overlap, none may be empty.
        labels: (b, ...) one for each bag.
        transform: applied to the instances of each batch, such as a conversion of bytes or an augmentation.

    Raises:
        ValueError: an empty bag, positions beyond the instances, another number of labels.

    Examples:
        >>> import torch, kofn
        >>> from kofn.learners import BagDataset
        >>> data = BagDataset(torch.arange(5.0), kofn.Bags.from_sizes([2, 3]), torch.tensor([1, 0]))
        >>> data.__getitems__([1, 0])
        Batch(instances=tensor([2., 3., 4., 0., 1.]), offsets=tensor([0, 3, 5]), labels=tensor([0, 1]), share=1.0)

    Any torch `DataLoader` takes it with ``collate_fn=BagDataset.collate``: a batch comes whole.
    """

    def __init__(
        self, instances: Any, bags: Bags, labels: Any, *, transform: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        self.instances = _require.numbers("instances", instances)
        self.bags = bags
        self.labels = _require.numbers("labels", labels)
        self.transform = transform
        _require_fit(bags, self.instances, self.labels)

    def __len__(self) -> int:
        return len(self.bags)

    def __getitem__(self, bag: int) -> Batch:
        return self.__getitems__([bag])

    def __getitems__(self, draw: Draw | list[int]) -> Batch:
        items, share = draw if isinstance(draw, Draw) else Draw(torch.tensor(draw, dtype=torch.int64))
        index, offsets, _ = self.bags.gather(items)
        instances = self.instances[index]
        return Batch(self.transform(instances) if self.transform else instances, offsets, self.labels[items], share)

    @staticmethod
    def collate(batch: Batch) -> Batch:
        """The batch itself: it was gathered whole."""
        return batch


def _require_fit(bags: Bags, instances: Tensor, labels: Tensor) -> None:
    """Require bags of instances that are there, none empty, with a label each."""
    needed = int(bags.index.max()) + 1 if len(bags.index) else 0
    if instances.dim() == 0 or len(instances) < needed:
        raise ValueError(
            f"`instances` must have a row for each position in `bags`, at least {needed}; "
            f"got shape {tuple(instances.shape)}."
        )
    if bags.copies is not None:
        raise ValueError("`bags` must have no copies, of which a batch says nothing. Repeat them: bags.repeated().")
    if not len(bags):
        raise ValueError("`bags` must hold at least one bag; got none.")
    if bool((bags.sizes == 0).any()):
        raise ValueError(
            f"`bags` must not be empty; bag {bags.names[int((bags.sizes == 0).nonzero()[0])]!r} has no instance. "
            f"There is nothing to learn from it: leave it out with bags.select(bags.sizes > 0)."
        )
    if labels.dim() == 0 or len(labels) != len(bags):
        raise ValueError(
            f"`labels` must have one row for each of the {len(bags)} bags; got shape {tuple(labels.shape)}. "
            f"Labels that are repeated on instances: bags.common(labels)."
        )
