"""Data sets of bags: a batch is its bags one after the other, through torch's own loader too."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.data import DataLoader

from kofn import Bags
from kofn.learners import BagDataset, BagSampler, Batch, Draw

pd = importlib.import_module("pandas")

LISTS = [[0, 3, 1], [3], [5, 5, 0, 2], [4, 1]]  # instances in two bags, twice in one
BAGS = Bags.from_lists(LISTS)
INSTANCES = torch.arange(12.0).view(6, 2)
LABELS = torch.tensor([2, 0, 1, 1])


def assert_batch(batch: Batch, which: list[int], share: float = 1.0) -> None:
    """Bag by bag what was asked for."""
    assert torch.equal(batch.instances, torch.cat([INSTANCES[LISTS[j]] for j in which]))
    assert batch.offsets.tolist() == np.cumsum([0, *(len(LISTS[j]) for j in which)]).tolist()
    assert torch.equal(batch.labels, LABELS[which])
    assert batch.share == share


@pytest.fixture
def always_warn() -> Iterator[None]:
    """Torch's warnings each time, not only the first time in a process; pytest makes them errors."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@given(which=st.lists(st.integers(-4, 3), min_size=1, max_size=6))
def test_batch_is_its_bags_one_after_the_other(which: list[int]) -> None:
    data = BagDataset(INSTANCES, BAGS, LABELS)
    assert_batch(data.__getitems__(which), which)
    assert_batch(data.__getitems__(Draw(torch.tensor(which), share=0.25)), which, 0.25)


def test_one_bag_is_a_batch() -> None:
    data = BagDataset(INSTANCES, BAGS, LABELS)
    assert len(data) == 4
    for bag in (0, 3, -1):
        assert_batch(data[bag], [bag])
    with pytest.raises(IndexError):  # so that a loop over the data ends
        data[4]


def test_labels_of_several_columns() -> None:
    labels = torch.arange(8.0).view(4, 2)
    assert torch.equal(BagDataset(INSTANCES, BAGS, labels).__getitems__([2, 0]).labels, labels[[2, 0]])


def test_transform_sees_a_whole_batch() -> None:
    seen = []

    def halve(instances: Tensor) -> Tensor:
        seen.append(instances.shape)
        return instances / 2

    batch = BagDataset(INSTANCES.to(torch.uint8), BAGS, LABELS, transform=halve).__getitems__([1, 2])
    assert seen == [(5, 2)]
    assert torch.equal(batch.instances, INSTANCES[[3, 5, 5, 0, 2]] / 2)


@pytest.mark.usefixtures("always_warn")
def test_arrays_are_not_copied(tmp_path: Path) -> None:
    array = INSTANCES.numpy().copy()
    np.save(tmp_path / "x.npy", array)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    locked = array.copy()
    locked.flags.writeable = False
    for given_ in (array, mapped, locked, array[:, ::-1][:, ::-1]):
        data = BagDataset(given_, BAGS, LABELS.numpy())
        assert np.shares_memory(data.instances.numpy(), given_)
        assert torch.equal(data.instances, INSTANCES)
    assert_batch(BagDataset(mapped, BAGS, LABELS).__getitems__([3, 0]), [3, 0])
    assert BagDataset(INSTANCES, BAGS, LABELS).instances is INSTANCES


@pytest.mark.usefixtures("always_warn")
def test_arrays_that_torch_does_not_take() -> None:
    turned = INSTANCES.flip(0).numpy()[::-1]  # a negative stride
    assert_batch(BagDataset(turned, BAGS, LABELS).__getitems__([2]), [2])
    labels = pd.Series(LABELS.tolist(), index=list("wxyz"))
    assert_batch(BagDataset(pd.DataFrame(INSTANCES.numpy()), BAGS, labels).__getitems__([2]), [2])


@pytest.mark.parametrize("workers", [0, 2])
def test_through_a_loader(workers: int) -> None:
    data = BagDataset(INSTANCES, BAGS, LABELS)
    sampler = BagSampler(BAGS.sizes, bags=3, seed=5)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=BagDataset.collate, num_workers=workers)  # type: ignore[arg-type]  # torch asks for lists of positions; a Draw says more
    for epoch in range(2):
        sampler.set_epoch(epoch)
        batches, draws = list(loader), list(sampler)
        assert len(batches) == len(draws) == len(loader) == 2
        for batch, draw in zip(batches, draws, strict=True):
            assert isinstance(batch, Batch)
            assert_batch(batch, draw.items.tolist())


def test_through_a_loader_with_its_own_sampler() -> None:
    loader = DataLoader(BagDataset(INSTANCES, BAGS, LABELS), batch_size=3, collate_fn=BagDataset.collate)  # type: ignore[arg-type]  # batches come whole
    for batch, which in zip(loader, [[0, 1, 2], [3]], strict=True):
        assert_batch(batch, which)


X = INSTANCES
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: BagDataset(X[:5], BAGS, LABELS),
        ValueError,
        r"`instances` must have a row .* at least 6; got shape \(5, 2\)",
    ),
    (lambda: BagDataset(torch.tensor(1.0), BAGS, LABELS), ValueError, r"`instances` must have a row .* got shape \(\)"),
    (lambda: BagDataset(["a"] * 6, BAGS, LABELS), TypeError, "`instances` must be numbers, .* got list: "),
    (lambda: BagDataset(X, Bags.from_sizes([]), []), ValueError, "`bags` must hold at least one bag; got none."),
    (
        lambda: BagDataset(X, Bags.from_lists({"a": [0], "b": []}), [1, 0]),
        ValueError,
        r"`bags` must not be empty; bag 'b' has no instance. .* bags.select\(bags.sizes > 0\)",
    ),
    (lambda: BagDataset(X, BAGS, LABELS[:3]), ValueError, r"`labels` .* each of the 4 bags; got shape \(3,\)"),
    (lambda: BagDataset(X, BAGS, torch.zeros(6)), ValueError, r"repeated on instances: bags.common\(labels\)"),
    (lambda: BagDataset(X, BAGS, 1), ValueError, r"`labels` .* got shape \(\)"),
    (lambda: BagDataset(X, BAGS, list("abcd")), TypeError, "`labels` must be numbers"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_data_that_do_not_fit(case: int) -> None:
    make, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        make()
