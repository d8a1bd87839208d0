"""The LightningModule of every count-based task: any network of instances, any objective."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from kofn import _require
from kofn.batches import Batch
from kofn.models import AttentionMIL
from kofn.training._objectives import Objective
from kofn.training._schedules import SCHEDULES
from kofn.training._stopping import ByLoss, StoppingRule


class CountModule(LightningModule):
    """Trains a network of instances on labels of bags.

        loss of a step = mean over its bags of objective + l1 * sum |weights|

    The mean is that of the whole step, over processes and accumulated batches, however uneven they are. Logits of half
    precision are taken to float32 before the objective sees them. Once an epoch the training
    loss, the validation loss and the rule's criterion are logged (``train_loss``, ``val_loss``, ``criterion``), and the
    weights with the smallest criterion are kept in memory; at the end of `fit` they are put back.

    Args:
        network: from instances (m, ...) to one logit each, (m,) or (m, 1); or a `kofn.models.AttentionMIL`.
        objective: from (logits, labels, offsets) to losses of bags.
        rule: when the network is at its best.
        lr: learning rate.
        schedule: of the rate of any optimizer over the steps of the fit: "constant"; "cosine", down to 0, which leaves
            the noise of the last batches out; "one-cycle", up from 0 over three tenths and then down, for losses that
            are steep where a network begins, such as those of large bags.
        weight_decay: of Adam, so on the squares of the weights.
        l1: factor of the sum of absolute weights (of matrices and kernels, not of biases).
        optimizer: from parameters to an optimizer, in place of Adam with `lr` and `weight_decay`.
        seed: of what is random inside an epoch (dropout): torch's stream is set from it when an epoch starts, so that
            a run that was cut off goes on the same. None leaves torch's stream alone.
        identity: what makes this fit this one, by name; a checkpoint of another is refused.

    Attributes:
        history: a dict for each epoch: epoch, train_loss and, with validation data, val_loss and criterion.
        best_epoch: the epoch whose weights were kept.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: Objective,
        *,
        rule: StoppingRule | None = None,
        lr: float = 1e-3,
        schedule: Literal["constant", "cosine", "one-cycle"] = "constant",
        weight_decay: float = 0.0,
        l1: float = 0.0,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = None,
        seed: int | None = None,
        identity: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.network, self.objective, self.rule = network, objective, rule or ByLoss()
        self.lr, self.weight_decay, self.l1, self.optimizer, self.seed = lr, weight_decay, l1, optimizer, seed
        _require.option("schedule", schedule, tuple(SCHEDULES))
        self.schedule = schedule
        self.identity = dict(identity or {})
        self.history: list[dict[str, float]] = []
        self.best_epoch: int | None = None
        self._best: dict[str, Tensor] = {}
        self._sums = torch.zeros(2, dtype=torch.float64)  # of training losses and of bags
        self._valid: Tensor | None = None  # of validation losses, of bags, and what the rule measures
        self._validation: dict[str, float] = {}  # the validation of this epoch

    def forward(self, batch: Batch) -> Tensor:
        """Logits (m,) of the instances of a batch, or (b,) of its bags from a network that pools; float32 at least."""
        dtype = next((p.dtype for p in self.network.parameters()), torch.float32)
        x = batch.instances.to(dtype) if batch.instances.is_floating_point() else batch.instances
        if isinstance(self.network, AttentionMIL):
            logits: Tensor = self.network(x, offsets=batch.offsets)
        else:
            logits = one_logit(self.network(x), len(x))
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def training_step(self, batch: Batch, _: int) -> Tensor:
        losses = self.objective(self(batch), batch.labels, batch.offsets)
        loss = losses.mean()
        n_bags = len(batch.labels) if batch.share else 0
        self._sums = self._sums.to(loss.device) + _weighted(loss.detach(), n_bags)
        # Lightning averages over processes and accumulated batches; `share` asks for the sum.
        loss = loss * (batch.share * self.trainer.world_size * self.trainer.accumulate_grad_batches)
        return loss + self.l1 * self._absolute_weights() if self.l1 else loss

    def _absolute_weights(self) -> Tensor:
        weights = (p.abs().sum() for p in self.network.parameters() if p.dim() > 1)
        return sum(weights, start=torch.zeros((), device=self.device))

    def validation_step(self, batch: Batch, _: int) -> None:
        logits = self(batch)
        loss = self.objective(logits, batch.labels, batch.offsets).mean()
        measured = self.rule.measure(logits, batch.labels, batch.offsets)
        sums = torch.cat([_weighted(loss, len(batch.labels)), measured])
        if not batch.share:  # a repetition, so that processes keep step; one that has no other must sum up too
            sums = torch.zeros_like(sums)
        self._valid = sums if self._valid is None else self._valid + sums

    def on_validation_epoch_end(self) -> None:
        if self._valid is None:
            return
        sums = self._total(self._valid)
        self._valid = None
        loss = float(sums[0] / sums[1])
        self._check_finite("validation", loss)
        self._validation = {"val_loss": loss, "criterion": self.rule.criterion(loss, sums[2:])}
        self._log(self._validation)

    def on_train_epoch_start(self) -> None:
        self._sums = torch.zeros_like(self._sums)
        if self.seed is not None:
            key = np.random.SeedSequence([self.seed, self.current_epoch, self.global_rank, 1])  # 1: not the sampler's
            torch.manual_seed(int(key.generate_state(1, np.uint64)[0] >> np.uint64(1)))

    def on_train_epoch_end(self) -> None:
        total, bags = self._total(self._sums).tolist()
        loss = total / max(bags, 1)
        self._check_finite("training", loss)
        if not all(bool(p.isfinite().all()) for p in self.network.parameters()):  # a finite loss, but no finite slope
            self._check_finite("training", float("nan"))
        self._log({"train_loss": loss}, prog_bar=True)
        if self._validation:
            earlier = [entry["criterion"] for entry in self.history if "criterion" in entry]
            if not earlier or self._validation["criterion"] < min(earlier):
                self.best_epoch = self.current_epoch
                self._best = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        self.history.append({"epoch": self.current_epoch, "train_loss": loss} | self._validation)
        self._validation = {}

    def on_fit_end(self) -> None:
        if self._best:
            self.network.load_state_dict(self._best)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        weights = self.network.parameters()
        if self.optimizer is not None:
            optimizer = self.optimizer(weights)
        else:
            optimizer = torch.optim.Adam(weights, lr=self.lr, weight_decay=self.weight_decay)
        if self.schedule == "constant":
            return optimizer
        steps = self.trainer.estimated_stepping_batches  # of the whole fit, over accumulated batches and processes
        rates = LambdaLR(optimizer, lambda step: SCHEDULES[self.schedule](min((step + 0.5) / steps, 1.0)))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rates, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["kofn"] = {"best": self._best, "identity": self.identity}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        saved = checkpoint.get("kofn")
        if saved is None:
            raise ValueError("`checkpoint` must be of a CountModule; it is of another module. Choose an empty folder.")
        _require_same_fit(saved["identity"], self.identity)
        self._best = saved["best"]

    # What travels with the weights, from a checkpoint and from processes that a strategy started.

    def get_extra_state(self) -> dict[str, Any]:
        return {"history": self.history, "best_epoch": self.best_epoch}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.history, self.best_epoch = state["history"], state["best_epoch"]

    def _check_finite(self, which: str, loss: float) -> None:
        if not np.isfinite(loss):
            raise ValueError(
                f"the {which} loss became {loss} in epoch {self.current_epoch}. Lower `lr`, scale the features, or "
                f"look for labels that no bag of that size can have."
            )

    def _log(self, values: Mapping[str, float], *, prog_bar: bool = False) -> None:
        # As float64, for a criterion of thousands and the loss that breaks its ties; Lightning makes numbers float32.
        exact = {name: torch.tensor(x, dtype=torch.float64, device=self.device) for name, x in values.items()}
        self.log_dict(exact, prog_bar=prog_bar, sync_dist=self.trainer.world_size > 1)

    def _total(self, sums: Tensor) -> Tensor:
        """Sums over all processes."""
        total: Tensor = self.trainer.strategy.reduce(sums.to(self.device), reduce_op="sum")
        return total


def _require_same_fit(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Require that a checkpoint is of this very fit."""
    differ = [name for name in now if before.get(name) != now[name]]
    if differ:
        changed = ", ".join(f"{name} was {before.get(name)} and is {now[name]}" for name in differ)
        raise ValueError(
            f"`checkpoint` must be of the same fit; it is of another: {changed}. "
            f"Choose an empty folder, or delete the checkpoint to start anew."
        )


def _weighted(loss: Tensor, n_bags: int) -> Tensor:
    """A sum of losses and how many they are, (2,) float64."""
    return torch.stack([loss.double() * n_bags, torch.tensor(n_bags, dtype=torch.float64, device=loss.device)])


def one_logit(output: Tensor, instances: int) -> Tensor:
    """Logits (m,) from a network's output, (m,) or (m, 1)."""
    if output.shape == (instances, 1):
        return output.squeeze(1)
    if output.shape != (instances,):
        raise ValueError(
            f"`module` must give one logit for each instance, shape ({instances},) or ({instances}, 1); "
            f"its output has shape {tuple(output.shape)}. End it with kofn.models.Logit(features)."
        )
    return output
