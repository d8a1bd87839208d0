"""Learning from positive and unlabelled data, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from kofn import _require, losses
from kofn.batches import PUDataset
from kofn.estimators._count_classifier import CountClassifier
from kofn.estimators._network import Module
from kofn.estimators._row_labels import hold_out, two_classes
from kofn.losses import mixture_proportion

LOSSES = ("count", "expectation", "upu", "nnpu", "cvir")


class PUClassifier(CountClassifier):
    """Learns to classify from labelled positives and unlabelled instances of which a known fraction is positive.

    The options of training, `hidden` to `random_state`, are those of `LLPClassifier`.

    Args:
        module: the network of instances: "mlp", another name of `kofn.models`, a `torch.nn.Module` (copied), or a
            factory of one.
        prior: fraction of positives in all the data, labelled or not; the mixture follows from it and from how many
            are labelled (`kofn.mixture_proportion`).
        mixture: fraction of positives among the unlabelled, in place of `prior`.
        loss: "count", the divergence of the law of a bag's count from the binomial; "expectation", its expected count;
            "upu", "nnpu" or "cvir".
        positive_weight: factor for the labelled positives, with "count" and "expectation".
        batch_size: unlabelled instances in a bag; a step has one bag, and as many labelled positives. By default a
            32nd of the unlabelled, at least 32 and at most 200.
        stopping: what makes an epoch the best: "loss", the validation loss; or "prior", the paper's rule, that as many
            unlabelled validation instances are taken for positive as the mixture says, which an untrained network may
            fulfil by chance when they are few.

    Attributes:
        classes_: the two classes; the second is positive.
        mixture_: the fraction of positives among the unlabelled that was trained with.
        network_: the trained network, in evaluation mode.
        history_: a dict for each epoch: epoch, train_loss, val_loss, criterion.
        best_epoch_: the epoch whose weights were kept, None without validation.
        held_out_: (k,) rows that were validated on.
        n_features_in_: as in scikit-learn.
        feature_names_in_: as in scikit-learn, of a DataFrame.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2000, 2))
        >>> truth = X[:, 0] > 0
        >>> y = np.where(truth & (rng.random(2000) < 0.5), 1, -1)  # half of the positives are labelled
        >>> model = kofn.PUClassifier(prior=0.5, hidden=(16,), lr=0.01, epochs=30, random_state=0).fit(X, y)
        >>> bool(((model.predict(X) == 1) == truth).mean() > 0.9)
        True

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023.
    """

    def __init__(
        self,
        module: Module = "mlp",
        *,
        prior: float | None = None,
        mixture: float | None = None,
        loss: Literal["count", "expectation", "upu", "nnpu", "cvir"] = "count",
        positive_weight: float = 1.0,
        stopping: Literal["loss", "prior"] = "loss",
        hidden: Sequence[int] = (128,),
        dropout: float = 0.0,
        epochs: int = 100,
        lr: float = 1e-3,
        schedule: Literal["constant", "cosine", "one-cycle"] = "constant",
        weight_decay: float = 0.0,
        l1: float = 0.0,
        batch_size: int | None = None,
        accumulate: int = 1,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        warm_start: bool = False,
        device: str = "cpu",
        precision: str = "32-true",
        progress: bool = False,
        checkpoint: str | Path | None = None,
        trainer: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.module = module
        self.prior = prior
        self.mixture = mixture
        self.loss = loss
        self.positive_weight = positive_weight
        self.stopping = stopping
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.lr = lr
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.l1 = l1
        self.batch_size = batch_size
        self.accumulate = accumulate
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.device = device
        self.precision = precision
        self.progress = progress
        self.checkpoint = checkpoint
        self.trainer = trainer
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PUClassifier:
        """Train on labelled positives and unlabelled instances.

        Args:
            X: (n, features) numbers, a DataFrame too, whose column names are kept; or (n, ...) for a network that takes
                more dimensions.
            y: (n,) 1 for labelled positives, -1 for unlabelled; or any two classes, of which the larger is labelled.

        Returns:
            The estimator itself.

        Raises:
            ValueError: neither `prior` nor `mixture`, or both; one class only; NaN in X.
        """
        self._check_options()
        instances, labels = self._check_training(X, y)
        classes, kind = two_classes(labels)
        labeled = torch.from_numpy(kind == 1)
        if bool(labeled.all()) or not bool(labeled.any()):
            raise ValueError(
                f"`y` must have two classes, labelled positives (1) and unlabelled rows (-1); there is only one class: "
                f"all of the {len(labeled)} rows are {'labelled' if labeled.all() else 'unlabelled'}."
            )
        mixture = self._mixture(float(labeled.double().mean()))
        seed = self._seed()
        chosen, held = hold_out(labeled, self.validation_fraction, seed)
        # Both kinds must be there to validate: a stratum may be too small to give any.
        valid = len(held) > 0 and bool(labeled[held].any()) and not bool(labeled[held].all())
        self.held_out_ = held.numpy() if valid else held[:0].numpy()
        self._train(
            PUDataset(instances[chosen], labeled[chosen]) if valid else PUDataset(instances, labeled),  # no copy
            PUDataset(instances[held], labeled[held]) if valid else None,
            self._objective(mixture),
            batches={"batch_size": self._bag_size(int((~labeled).sum()))},
            seed=seed,
            rule=self._rule(mixture),
        )
        self.classes_, self.mixture_ = classes, mixture
        return self

    def _check_options(self) -> None:
        super()._check_options()
        _require.option("loss", self.loss, LOSSES)
        _require.option("stopping", self.stopping, ("prior", "loss"))
        if (self.prior is None) == (self.mixture is None):
            raise ValueError(
                f"either `prior` (fraction of positives in all the data) or `mixture` (among the unlabelled) must be "
                f"given, not both; got {self.prior} and {self.mixture}. Unlabelled data alone do not tell it."
            )
        for name in ("prior", "mixture"):
            if getattr(self, name) is not None:
                _require.fraction(name, getattr(self, name))
        _require.number("positive_weight", self.positive_weight, low=0)

    def _bag_size(self, unlabeled: int) -> int:
        return min(max(unlabeled // 32, 32), 200) if self.batch_size is None else self.batch_size

    def _mixture(self, labeled_fraction: float) -> float:
        if self.mixture is not None:
            return float(self.mixture)
        prior = float(self.prior or 0.0)
        if prior < labeled_fraction:
            raise ValueError(
                f"`prior` must be at least the fraction of rows that are labelled, since these are positives too; got "
                f"{prior:g}, and {labeled_fraction:g} of the rows are labelled. Of the unlabelled alone: mixture=..."
            )
        return mixture_proportion(prior, labeled_fraction)

    def _objective(self, mixture: float) -> Any:
        from kofn.training import PUObjective

        weight = {"positive_weight": self.positive_weight}
        if self.loss in ("count", "expectation"):
            match = "distribution" if self.loss == "count" else "expectation"
            return PUObjective(mixture, losses.pu_loss, weight | {"match": match})
        return PUObjective(
            mixture, {"upu": losses.upu_loss, "nnpu": losses.nnpu_loss, "cvir": losses.cvir_loss}[self.loss]
        )

    def _rule(self, mixture: float) -> Any:
        from kofn.training import ByLoss, ByPrior

        return ByPrior(mixture) if self.stopping == "prior" else ByLoss()
