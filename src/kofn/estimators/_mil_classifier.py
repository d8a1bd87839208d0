"""Multiple instance learning, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from torch import Tensor, nn

from kofn import _require
from kofn.bags import Bags
from kofn.batches import BagDataset
from kofn.counts import CountDistribution
from kofn.estimators._count_classifier import CountClassifier
from kofn.estimators._network import Module, with_attention
from kofn.estimators._row_labels import (
    Array,
    bag_weights,
    bags_of,
    base_rate,
    hold_out,
    known_classes,
    rows_of,
    two_classes,
)
from kofn.metrics import bag_scores
from kofn.models import AttentionMIL

ATTENTION = ("attention", "gated-attention")
LOSSES = ("count", "max", "mean", "logsumexp", *ATTENTION)


class MILClassifier(CountClassifier):
    """Learns to classify instances, and bags, from whether each bag has a positive instance.

    The options of training, `hidden` to `random_state`, are those of `LLPClassifier`.

    Args:
        module: the network of instances: "mlp", another name of `kofn.models`, a `torch.nn.Module` (copied), or a
            factory of one. For attention: a `torch.nn.Sequential` that ends in a `kofn.models.Logit`, or an
            `AttentionMIL`.
        loss: "count", -log P(S >= 1) or -log P(S = 0); "max", "mean" or "logsumexp" of the instances; "attention" or
            "gated-attention" over their embeddings.
        positive_weight: factor for positive bags, or "balanced": negative bags over positive ones.
        start: with loss="count", the probability that a new network gives each instance, instead of one half, which
            makes a large bag positive for certain; "bags" is the rate at which bags of these sizes are positive as
            often as these are. It goes well with ``schedule="one-cycle"``.

    Attributes:
        classes_: the two classes; the second is positive.
        network_: the trained network, in evaluation mode.
        history_: a dict for each epoch: epoch, train_loss, val_loss, criterion.
        best_epoch_: the epoch whose weights were kept, None without validation.
        held_out_: (k,) bags that were validated on, by the order in which they first appear.
        n_features_in_: as in scikit-learn.
        feature_names_in_: as in scikit-learn, of a DataFrame.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(600, 2)), np.repeat(np.arange(200), 3)
        >>> y = (X[:, 0] > 1).reshape(200, 3).any(1).repeat(3)  # the bag's label, on each of its rows
        >>> model = kofn.MILClassifier(hidden=(16,), lr=0.01, epochs=30, random_state=0).fit(X, y, groups=groups)
        >>> model.predict_bag_proba(X, groups).shape  # no and at least one positive
        (200, 2)
        >>> bool((model.predict(X) == (X[:, 0] > 1)).mean() > 0.95)
        True

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023.
    """

    # Pipelines and searches hand `groups` on without set_fit_request(groups=True).
    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        module: Module = "mlp",
        *,
        loss: Literal["count", "max", "mean", "logsumexp", "attention", "gated-attention"] = "count",
        positive_weight: float | Literal["balanced"] = 1.0,
        start: float | Literal["bags"] | None = None,
        hidden: Sequence[int] = (128,),
        dropout: float = 0.0,
        epochs: int = 100,
        lr: float = 1e-3,
        schedule: Literal["constant", "cosine", "one-cycle"] = "constant",
        weight_decay: float = 0.0,
        l1: float = 0.0,
        batch_size: int | None = None,
        max_instances: int | None = None,
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
        self.loss = loss
        self.positive_weight = positive_weight
        self.start = start
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.lr = lr
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.l1 = l1
        self.batch_size = batch_size
        self.max_instances = max_instances
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

    def fit(self, X: Any, y: Any, groups: Any = None) -> MILClassifier:
        """Train on bags.

        Args:
            X: (n, features) numbers, a DataFrame too, whose column names are kept; or (n, ...) for a network that takes
                more dimensions.
            y: (n,) the label of each row's bag, one of two classes, the same on all rows of a bag; the larger one says
                that at least one instance is positive.
            groups: (n,) the bag of each row, any hashable; None makes each row its own bag, and this ordinary
                classification.

        Returns:
            The estimator itself.

        Raises:
            ValueError: a group with two different labels; more than two classes; NaN in X.
        """
        self._check_options()
        instances, labels = self._check_training(X, y)
        classes, positive = two_classes(labels)
        bags = bags_of(groups, len(instances))
        bag_labels = bags.common(positive, name="y")
        seed = self._seed()
        chosen, held = hold_out(bag_labels, self.validation_fraction, seed)
        self.held_out_ = held.numpy()
        train = BagDataset(instances, bags.select(chosen), bag_labels[chosen])
        self._train(
            train,
            BagDataset(instances, bags.select(held), bag_labels[held]) if len(held) else None,
            self._objective(bag_labels[chosen]),
            batches=self._batch_options(len(chosen)),
            seed=seed,
            rule=self._rule(),
            start=base_rate(train.bags.sizes, train.labels) if self.start == "bags" else self.start,
        )
        self.classes_ = classes
        return self

    def predict_bag_proba(self, X: Any, groups: Any) -> NDArray[np.float64]:
        """Probability of each bag to have no positive instance, and at least one, by the exact law of its count.

        With loss="attention" it is the attention model's own.

        Args:
            X: (n, ...) instances.
            groups: (n,) the bag of each instance; bags come in the order in which they first appear.

        Returns:
            (bags, 2).
        """
        scores = torch.from_numpy(self.bag_decision_function(X, groups))
        return torch.stack([torch.sigmoid(-scores), torch.sigmoid(scores)], 1).numpy()

    def bag_decision_function(self, X: Any, groups: Any) -> NDArray[np.float64]:
        """Log-odds of each bag to have a positive instance: `predict_bag_proba` without rounding to 0 or 1. (bags,)."""
        instances = self._instances(X)
        bags = bags_of(groups, len(instances))
        if isinstance(self.network_, AttentionMIL):
            return self._logits(instances, bags).double().numpy()
        return bag_scores(self._logits(instances).double()[bags.index], offsets=bags.offsets).numpy()

    def predict_bags(self, X: Any, groups: Any) -> Array:
        """The more probable class of each bag, (bags,), in the order in which bags first appear."""
        classes: Array = self.classes_
        return classes[(self.bag_decision_function(X, groups) > 0).astype(np.int64)]

    def posterior_proba(self, X: Any, y: Any, groups: Any = None) -> NDArray[np.float64]:
        """Probability of each instance to be of each class, given its bag's label: in a negative bag none is positive.

            P(y_i = 1 | S >= 1) = p_i / P(S >= 1)

        Args:
            X: (n, ...) instances.
            y: (n,) labels as for `fit`.
            groups: (n,) as for `fit`.

        Returns:
            (n, 2).
        """
        logits, bags = self._bag_logits(X, groups)
        bag_labels = self._bag_labels(y, bags)
        positive = torch.empty(len(bags.index), dtype=torch.float64)
        dist = CountDistribution(logits, offsets=bags.offsets)
        positive[bags.index] = dist.posteriors_between(bag_labels, torch.where(bag_labels == 1, dist.sizes, 0))
        return torch.stack([1 - positive, positive], 1).numpy()

    def score(self, X: Any, y: Any, groups: Any = None, *, sample_weight: Any = None) -> float:
        """Share of right classes: of bags with groups, of instances without.

        Weights, (n,), are repeated on the rows of a bag, as labels are.
        """
        if groups is None:
            return super().score(X, y, sample_weight=sample_weight)
        predicted = self.predict_bags(X, groups)
        bags = bags_of(groups, len(X))
        truth = self.classes_[self._bag_labels(y, bags).numpy()]
        return float(accuracy_score(truth, predicted, sample_weight=bag_weights(sample_weight, bags)))

    def _bag_labels(self, y: Any, bags: Bags) -> Tensor:
        """0 or 1 for each bag, from labels of the classes seen in training."""
        return bags.common(known_classes(rows_of(y, len(bags.index)), self.classes_), name="y")

    def _check_options(self) -> None:
        super()._check_options()
        _require.option("loss", self.loss, LOSSES)
        if isinstance(self.positive_weight, str):
            _require.option("positive_weight", self.positive_weight, ("balanced",))
        else:
            _require.number("positive_weight", self.positive_weight, low=0)
        if self.start is not None:
            self._require_start(self.start)

    def _require_start(self, start: float | str) -> None:
        """Require a rate to begin at, which only the count of positives has."""
        if self.loss != "count":
            raise ValueError(
                f"`start` goes with loss='count', the distribution of a count; got loss={self.loss!r}. "
                f"Leave `start` out."
            )
        if start != "bags" and (isinstance(start, str) or not 0 < start < 1):
            raise ValueError(f"`start` must be a probability above 0 and below 1, or 'bags'; got {start!r}.")

    def _pools(self) -> bool:
        return self.loss in ATTENTION

    def _new_network(self, shape: tuple[int, ...]) -> nn.Module:
        network = super()._new_network(shape)
        return with_attention(network, gated=self.loss == "gated-attention") if self._pools() else network

    def _objective(self, labels: Tensor) -> Any:
        from kofn.training import BagObjective, PooledObjective

        if self.positive_weight == "balanced":
            positives = max(int(labels.sum()), 1)
            weight = max(len(labels) - positives, 1) / positives
        else:
            weight = float(self.positive_weight)
        if self._pools():
            return PooledObjective(weight)
        pool: Any = None if self.loss == "count" else self.loss
        return BagObjective(pool, weight)

    def _rule(self) -> Any:
        from kofn.training import ByLoss, ByLossAndError

        return ByLossAndError() if self._pools() else ByLoss()
