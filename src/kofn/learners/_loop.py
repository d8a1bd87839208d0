"""The training of a network: a plain torch loop, on one process or on all that `torchrun` started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from kofn.learners._attention import AttentionMIL
from kofn.learners._bag_sampler import BagSampler
from kofn.learners._checkpoints import Checkpoint, fit_identity
from kofn.learners._device_data import Batch, DeviceData, training_device
from kofn.learners._instance_network import instance_logits
from kofn.learners._learner import Progress
from kofn.learners._mapped_features import MappedFeatures
from kofn.learners._problem import Problem
from kofn.learners._random_stream import RandomStream
from kofn.learners._schedules import SCHEDULES, warm_up_epochs

if TYPE_CHECKING:
    from kofn.learners._network import Network

History = list[dict[str, float]]
CHUNK = 16384  # instances scored at a time


class Loop:
    """Trains a network on the bags of a problem.

        loss of a step = mean over its bags of weight * objective + l1 * sum |weights|

    The mean is that of the whole step, over processes and accumulated batches, however uneven they are. Logits are
    float32 at least before the objective sees them.

    Args:
        options: of the training.
        instances: (n, ...) features of all instances, on the CPU.
        train: bags to learn from.
        valid: bags to judge each epoch on, or None.
        seed: of the order of bags, of dropout and of whatever else the network draws.
    """

    def __init__(
        self,
        options: Network,
        instances: Tensor | MappedFeatures,
        train: Problem,
        valid: Problem | None,
        seed: int,
    ) -> None:
        # Devices and processes, started by torchrun or not; imported here, since it takes as long as torch.
        from accelerate import PartialState

        self.options, self.train, self.valid, self.seed = options, train, valid, seed
        # Without a GPU the processes must be set to CPUs, or each would train on its own.
        self.state = PartialState(cpu=options.device == "cpu" or not torch.cuda.is_available())
        self.device = training_device(options.device, self.state.num_processes, self.state.local_process_index)
        self.processes, self.process = self.state.num_processes, self.state.process_index
        self.data = DeviceData(instances, self.device)
        self.stream = RandomStream(self.device)
        if options.max_instances is not None:
            self.batch_size = {"instances": options.max_instances}
        else:
            # Sixteen steps an epoch or more: with few large steps a small data set would hardly move the weights.
            self.batch_size = {"bags": options.batch_size or min(max(len(train.bags) // 16, 1), 64)}

    def run(self, network: nn.Module, progress: Progress | None) -> tuple[nn.Module, History, int | None]:
        """The network in evaluation mode with its best weights, the history, and the place in it of these weights."""
        modes = [(part, part.training) for part in network.modules()]  # a frozen part stays frozen
        network.to(self.device)
        self._dtype = next((p.dtype for p in network.parameters()), torch.float32)
        optimizer = self._optimizer(network)
        parallel = DistributedDataParallel(network) if self.processes > 1 else network
        steps = self.options.epochs * self._steps_per_epoch()
        history: History = []
        best: dict[str, Tensor] = {}
        best_epoch: int | None = None
        checkpoint = None
        if self.options.checkpoint is not None:
            identity = fit_identity(self.options, self.train, self.valid, self.seed)
            checkpoint = Checkpoint(self.options.checkpoint, identity)
            if checkpoint.exists():
                history, best, best_epoch = checkpoint.load(network, optimizer)
        for epoch in range(len(history), self.options.epochs):
            if self._is_patience_over(history, best_epoch):
                break
            self.stream.seed(self.seed, epoch, self.process, 1)  # 1: not the sampler's
            problem = self.train.ranked(partial(self._score, network.eval()), epoch).deal(epoch, self.seed)
            for part, mode in modes:
                part.training = mode
            train_loss = self._epoch(parallel, network, optimizer, problem, epoch, steps)
            entry = {"epoch": float(epoch + 1), "train_loss": train_loss}
            if self.valid is not None:
                entry |= self._validate(network.eval())
            history.append(entry)
            if self.valid is not None and (best_epoch is None or entry["criterion"] < history[best_epoch]["criterion"]):
                best_epoch = epoch
                best = {name: value.detach().clone() for name, value in network.state_dict().items()}
            if checkpoint is not None and self.process == 0:
                checkpoint.save(network, optimizer, history, best, best_epoch)
            if progress is not None and self.process == 0:
                progress("training", epoch + 1, self.options.epochs, entry)
            if self.options.callback is not None:
                self.options.callback(network.eval(), entry)
        if best:
            network.load_state_dict(best)
        return network.cpu().eval(), history, best_epoch

    def _epoch(
        self,
        parallel: nn.Module,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        problem: Problem,
        epoch: int,
        steps: int,
    ) -> float:
        """Train one epoch on its bags; its mean training loss."""
        total, bags = torch.zeros((), dtype=torch.float64, device=self.device), 0
        rate = SCHEDULES[self.options.schedule]
        full = [group["lr"] for group in optimizer.param_groups]
        done = epoch * (steps // self.options.epochs)
        accumulate = self.options.accumulate
        for number, batch in enumerate(self._batches(problem, epoch, shuffle=True, accumulate=accumulate)):
            last = (number + 1) % accumulate == 0
            with nullcontext() if last or self.processes == 1 else cast(DistributedDataParallel, parallel).no_sync():
                losses = self._losses(parallel, problem, batch)
                if batch.share:  # else a repetition, so that processes keep step
                    total += losses.detach().sum(dtype=torch.float64)
                    bags += len(losses)
                loss = losses.mean()
                if batch.share * self.processes != 1:  # processes are averaged, and `share` asks for the sum
                    loss = loss * (batch.share * self.processes)
                if self.options.l1:
                    loss = loss + self.options.l1 / accumulate * _absolute_weights(network)
                loss.backward()
            if last:
                for group, most in zip(optimizer.param_groups, full, strict=True):
                    group["lr"] = most * rate(min((done + 0.5) / steps, 1.0))
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                done += 1
        for group, most in zip(optimizer.param_groups, full, strict=True):
            group["lr"] = most
        loss_sum, bag_sum = self._summed(torch.stack([total, total.new_tensor(float(bags))])).tolist()
        loss_of_epoch = loss_sum / max(bag_sum, 1)
        finite = all(torch.stack([p.isfinite().all() for p in network.parameters()]).tolist())
        _require_finite("training", loss_of_epoch if finite else float("nan"), epoch + 1)
        return float(loss_of_epoch)

    def _validate(self, network: nn.Module) -> dict[str, float]:
        """The loss of the held-out bags and the rule's criterion."""
        assert self.valid is not None
        rule = self.valid.rule
        sums: Tensor | None = None
        with torch.no_grad(), self.stream.lent():
            for batch in self._batches(self.valid, 0, shuffle=False, accumulate=1):
                logits = self._forward(network, self.valid, batch)
                losses = self.valid.losses_of(logits, batch.labels, batch.offsets, batch.copies).double()
                losses = _weighted(losses, batch.weights)
                sizes = losses.new_tensor(len(losses)) if batch.weights is None else batch.weights.sum()
                measured = rule.measure(logits, batch.labels, batch.offsets)
                found = torch.cat([torch.stack([losses.sum(), sizes]), measured])
                found = found if batch.share else torch.zeros_like(found)
                sums = found if sums is None else sums + found
        assert sums is not None
        sums = self._summed(sums)
        loss = float(sums[0] / sums[1])
        _require_finite("validation", loss, None)
        return {"val_loss": loss, "criterion": rule.criterion(loss, sums[2:])}

    def _losses(self, parallel: nn.Module, problem: Problem, batch: Batch) -> Tensor:
        """Losses of some bags by their weights, whose mean over all is 1."""
        with self.stream.lent():
            logits = self._forward(parallel, problem, batch)
        return _weighted(problem.losses_of(logits, batch.labels, batch.offsets, batch.copies), batch.weights)

    def _forward(self, network: nn.Module, problem: Problem, batch: Batch) -> Tensor:
        """Logits of the instances of some bags, or of the bags from a network that pools."""
        x = self.data.gather(batch.rows).to(self._dtype)
        with self._autocast():
            pools = isinstance(getattr(network, "module", network), AttentionMIL)
            logits = (
                network(x, offsets=batch.offsets) if pools else instance_logits(network(x), len(x), problem.outputs)
            )
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def _score(self, network: nn.Module, rows: Tensor) -> Tensor:
        """Logits of instances by a network in evaluation mode, for a problem that ranks them."""
        parts = []
        with torch.no_grad(), self.stream.lent(), self._autocast():
            for some in rows.split(CHUNK):
                x = self.data.gather(some).to(self._dtype)
                parts.append(instance_logits(network(x), len(x), self.train.outputs).float())
        return torch.cat(parts).cpu()

    @contextmanager
    def _autocast(self) -> Iterator[None]:
        if self.options.precision == "float32":
            yield
            return
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            yield

    def _batches(self, problem: Problem, epoch: int, *, shuffle: bool, accumulate: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        sampler = BagSampler(problem.bags.offsets.diff(), **self.batch_size, **self._plan(shuffle, accumulate))
        sampler.set_epoch(epoch)
        weights = None if problem.weight is None else problem.bag_weights / problem.bag_weights.mean()
        return self.data.batches(problem, list(sampler), weights)

    def _plan(self, shuffle: bool, accumulate: int) -> dict[str, Any]:
        return {
            "shuffle": shuffle,
            "seed": self.seed,
            "processes": self.processes,
            "process": self.process,
            "accumulate": accumulate,
        }

    def _steps_per_epoch(self) -> int:
        accumulate = self.options.accumulate
        sampler = BagSampler(self.train.bags.offsets.diff(), **self.batch_size, **self._plan(True, accumulate))
        return len(sampler) // accumulate

    def _optimizer(self, network: nn.Module) -> torch.optim.Optimizer:
        weights = list(network.parameters())
        if self.options.optimizer is not None:
            return self.options.optimizer(weights)
        # Fused: one call for all weights, in place of some for each.
        return torch.optim.Adam(weights, lr=self.options.lr, weight_decay=self.options.weight_decay, fused=True)

    def _is_patience_over(self, history: History, best_epoch: int | None) -> bool:
        """Whether as many epochs as `patience` have passed since the best one and since the rate stopped rising."""
        if self.options.patience is None or best_epoch is None:
            return False
        since = max(best_epoch + 1, warm_up_epochs(self.options.schedule, self.options.epochs))
        return len(history) - since >= self.options.patience

    def _summed(self, sums: Tensor) -> Tensor:
        """Sums over all processes."""
        if self.processes > 1:
            torch.distributed.all_reduce(sums)
        return sums


def _weighted(losses: Tensor, weights: Tensor | None) -> Tensor:
    """Losses of bags by their weights; a bag of weight 0 is left out, whatever its loss."""
    return losses if weights is None else losses.masked_fill(weights == 0, 0.0) * weights.to(losses.dtype)


def _absolute_weights(network: nn.Module) -> Tensor:
    weights = [p.abs().sum() for p in network.parameters() if p.dim() > 1]
    return torch.stack(weights).sum() if weights else torch.zeros(())


def _require_finite(which: str, loss: float, epoch: int | None) -> None:
    """Require a loss that is a number."""
    if not np.isfinite(loss):
        when = "" if epoch is None else f" in epoch {epoch}"
        raise ValueError(
            f"the {which} loss became {loss}{when}. Lower `lr`, scale the features, or look for labels that no bag of "
            f"that size can have."
        )
