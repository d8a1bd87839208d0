"""The LightningDataModule of bags: what goes into a step, shared by all processes."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader

from kofn import _require
from kofn.batches import BagDataset, BagSampler, Batch, PUDataset, PUSampler, StepSampler


class CountData(LightningDataModule):
    """Training and validation bags in batches.

    Args:
        train: a `kofn.batches.BagDataset` or `PUDataset`.
        valid: the same for validation, or None.
        batch_size: bags in a step, over all processes and accumulated batches. For PU data: unlabelled instances in a
            bag; a step has one bag for each process and accumulated batch.
        max_instances: instances in a batch at most, in place of `batch_size`. For bags only.
        positives: labelled positives in a PU bag; by default as many as there are unlabelled.
        seed: of the order of the bags.
        workers: processes that gather batches; 0, gathering in place, is the fastest for data in memory.

    A `Trainer` takes it with ``use_distributed_sampler=False``: the batches know of the processes themselves.
    """

    def __init__(
        self,
        train: BagDataset | PUDataset,
        valid: BagDataset | PUDataset | None = None,
        *,
        batch_size: int | None = 32,
        max_instances: int | None = None,
        positives: int | None = None,
        seed: int = 0,
        workers: int = 0,
    ) -> None:
        super().__init__()
        _require.one_of_two("batch_size", batch_size, "max_instances", max_instances)
        if max_instances is not None and isinstance(train, PUDataset):
            raise ValueError(
                f"`max_instances` is for bags; PU data are dealt into bags of `batch_size`; got {max_instances}."
            )
        self.train, self.valid, self.seed, self.workers = train, valid, seed, workers
        self.batch_size, self.max_instances, self.positives = batch_size, max_instances, positives

    def train_dataloader(self) -> DataLoader[Batch]:
        return self._loader(self.train, shuffle=True)

    def val_dataloader(self) -> DataLoader[Batch] | list[Any]:
        return [] if self.valid is None else self._loader(self.valid, shuffle=False)

    def _loader(self, data: BagDataset | PUDataset, *, shuffle: bool) -> DataLoader[Batch]:
        return DataLoader(
            data,
            batch_sampler=self._sampler(data, shuffle=shuffle),  # type: ignore[arg-type]  # a Draw, no list
            collate_fn=BagDataset.collate,  # type: ignore[arg-type]  # a Batch, no list
            num_workers=self.workers,
            persistent_workers=self.workers > 0,
            generator=torch.Generator(),  # else every start of an epoch draws from torch's stream
        )

    def _sampler(self, data: BagDataset | PUDataset, *, shuffle: bool) -> StepSampler:
        plan: dict[str, Any] = {"shuffle": shuffle, "seed": self.seed}
        if self.trainer is not None:
            plan |= {"processes": self.trainer.world_size, "process": self.trainer.global_rank}
            plan["accumulate"] = self.trainer.accumulate_grad_batches if shuffle else 1
        if isinstance(data, PUDataset):
            return PUSampler(data.labeled, size=self.batch_size or 200, positives=self.positives, **plan)
        return BagSampler(data.bags.sizes, bags=self.batch_size, instances=self.max_instances, **plan)
