"""What the three estimators share: training, scores of instances, laws of counts, saving."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from kofn import _require
from kofn.bags import Bags
from kofn.batches import BagDataset, PUDataset
from kofn.counts import CountDistribution
from kofn.estimators._fit_identity import fit_identity
from kofn.estimators._network import make_network, network_logits, require_scores, same_shapes, set_start_rate
from kofn.estimators._row_labels import Array, as_array, bags_of
from kofn.estimators._saving import load, save
from kofn.models import AttentionMIL

CHUNK = 16384  # instances scored at a time
Self = TypeVar("Self", bound="CountClassifier")


class CountClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An instance classifier that is trained on counts. Use `LLPClassifier`, `MILClassifier` or `PUClassifier`."""

    classes_: Array
    network_: nn.Module
    history_: list[dict[str, float]]
    best_epoch_: int | None
    held_out_: NDArray[np.int64]
    module: Any
    loss: str
    hidden: Any
    dropout: float
    epochs: int
    lr: float
    schedule: Literal["constant", "cosine", "one-cycle"]
    weight_decay: float
    l1: float
    batch_size: int | None
    max_instances: int | None
    accumulate: int
    validation_fraction: float
    patience: int | None
    warm_start: bool
    device: str
    precision: str
    progress: bool
    checkpoint: str | Path | None
    trainer: dict[str, Any] | None
    random_state: Any

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log-odds of each instance to be positive, (n, ...) to (n,). Positive ones are above 0.

        An attention model scores an instance as a bag of one.
        """
        return self._logits(self._instances(X)).double().numpy()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each instance to be of each class, (n, ...) to (n, 2)."""
        logits = self._logits(self._instances(X)).double()
        return torch.stack([torch.sigmoid(-logits), torch.sigmoid(logits)], 1).numpy()

    def predict(self, X: Any) -> Array:
        """The more probable class of each instance, (n, ...) to (n,)."""
        positive = self.decision_function(X) > 0
        classes: Array = self.classes_
        return classes[positive.astype(np.int64)]

    def score(self, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Share of instances whose true class is predicted, by weight if there are weights, (n,)."""
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def predict_bag_proba(self, X: Any, groups: Any) -> NDArray[np.float64]:
        """The exact law of each bag's number of positives.

        Args:
            X: (n, ...) instances.
            groups: (n,) the bag of each instance; bags come in the order in which they first appear.

        Returns:
            (bags, largest bag + 1): P(S = k) in column k, 0 past a bag's size.
        """
        logits, bags = self._bag_logits(X, groups)
        dist = CountDistribution(logits, offsets=bags.offsets)
        counts = dist.count_layout
        table = torch.zeros(len(bags), counts.longest, dtype=torch.float64)
        table[counts.spread(torch.arange(len(bags))), counts.place()] = dist.log_probs().exp()
        return table.numpy()

    def predict_bags(self, X: Any, groups: Any) -> Array:
        """The most probable number of positives in each bag, (bags,), in the order in which bags first appear."""
        logits, bags = self._bag_logits(X, groups)
        most: Array = CountDistribution(logits, offsets=bags.offsets).mode.numpy()
        return most

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one file: safetensors, with JSON in its header; see `kofn.estimators.load`.

        The file appears whole or not at all. A network, a factory or a law of noise of your own is code, which is
        not saved: give it again when loading. Options of the machine are not saved either: `checkpoint`, `trainer`,
        `progress`, `device`, a `RandomState`.

        Raises:
            sklearn.exceptions.NotFittedError: nothing to save.
            ValueError: `path` is something else than a model.
        """
        check_is_fitted(self)
        save(self, Path(path))

    @classmethod
    def load(cls: type[Self], path: str | Path, *, module: Any = None, **code_parameters: Any) -> Self:
        """Read an estimator of this class from a file written by `save`.

        Args:
            path: the file.
            module: the network or factory that it was trained with, if that was not a name.
            **code_parameters: other parameters that were not saved because they are code, such as ``noise``.

        Raises:
            FileNotFoundError, ValueError: no such model; one of another class or a newer version; an altered or cut
                file; a parameter that was not saved and is not given.
        """
        loaded: Self = load(Path(path), kinds=[cls], code_parameters={"module": module, **code_parameters})
        return loaded

    # What follows is for the estimators themselves.

    def _check_training(self, X: Any, y: Any, **checks: Any) -> tuple[Tensor, Array]:
        """Instances as float32 and labels as an array, without NaN."""
        checks |= {"dtype": np.float32, "allow_nd": True}
        instances, labels = validate_data(self, as_array(X), as_array(y), **checks)
        return torch.from_numpy(np.ascontiguousarray(instances)), np.asarray(labels)

    def _check_options(self) -> None:
        """Parameters that would otherwise fail late, or not at all."""
        if self.patience is not None:  # of no effect without validation, and then training does not see it
            _require.whole_number("patience", self.patience, low=1)
        for name in ("lr", "weight_decay", "l1"):
            _require.number(name, getattr(self, name), low=0)
        for name in ("dropout", "validation_fraction"):
            if _require.fraction(name, getattr(self, name)) == 1:
                raise ValueError(f"`{name}` must be below 1, or nothing is left to learn from; got 1.")
        if self.checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError(
                f"`random_state` must be an int with `checkpoint`, so that a fit that was cut off can go on; got "
                f"{self.random_state!r}."
            )

    def _instances(self, X: Any) -> Tensor:
        check_is_fitted(self)
        rows = validate_data(self, as_array(X), dtype=np.float32, allow_nd=True, reset=False)
        if rows.shape[1:] != self.instance_shape_:
            raise ValueError(
                f"X has instances of shape {rows.shape[1:]}, but {type(self).__name__} is expecting instances of shape "
                f"{self.instance_shape_}, as it was trained with."
            )
        return torch.from_numpy(np.ascontiguousarray(rows))

    def _pools(self) -> bool:
        """Whether the network gives one logit a bag."""
        return False

    def _new_network(self, shape: tuple[int, ...]) -> nn.Module:
        network = make_network(self.module, shape, hidden=self.hidden, dropout=self.dropout)
        if isinstance(network, AttentionMIL) and not self._pools():
            raise ValueError(
                "`module` must give one logit for each instance; an AttentionMIL gives one for each bag. It goes with "
                "MILClassifier(loss='attention')."
            )
        return network

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _train(
        self,
        train: BagDataset | PUDataset,
        valid: BagDataset | PUDataset | None,
        objective: Any,
        *,
        batches: dict[str, Any],
        seed: int,
        rule: Any = None,
        start: float | None = None,
    ) -> None:
        """Fit a new network, from the weights of the last with `warm_start`, and keep what became of it."""
        from kofn import training  # brings Lightning: only when something is fitted

        shape = tuple(train.instances.shape[1:])
        with torch.random.fork_rng(devices=[]):  # torch's own stream stays as it was
            torch.manual_seed(seed)
            network = self._new_network(shape)
            if start is not None:
                set_start_rate(network, start)
            require_scores(network, train.instances[:2])
            if self.warm_start and same_shapes(network, getattr(self, "network_", None)):
                network.load_state_dict(self.network_.state_dict())
            module = training.CountModule(
                network,
                objective,
                rule=rule,
                lr=self.lr,
                schedule=self.schedule,
                weight_decay=self.weight_decay,
                l1=self.l1,
                seed=seed,
                identity=self._identity(train) | {"seed": str(seed)},
            )
            data = training.CountData(train, valid, seed=seed, **batches)
            training.fit(
                module,
                data,
                epochs=self.epochs,
                patience=self.patience if valid is not None else None,
                accumulate=self.accumulate,
                device=self.device,
                precision=self.precision,
                progress=self.progress,
                checkpoint=self.checkpoint,
                trainer=self.trainer,
            )
        self.network_ = network.eval()
        self.instance_shape_, self.seed_ = shape, seed
        self.history_, self.best_epoch_ = module.history, module.best_epoch

    def _batch_options(self, n_bags: int) -> dict[str, Any]:
        if self.max_instances is not None:
            return {"batch_size": None, "max_instances": self.max_instances}
        # Sixteen steps an epoch or more: with few large steps a small data set would hardly move the weights.
        return {"batch_size": min(max(n_bags // 16, 1), 64) if self.batch_size is None else self.batch_size}

    def _identity(self, train: BagDataset | PUDataset) -> dict[str, str]:
        """What must be the same for a checkpoint to be of this fit; more epochs are welcome."""
        if self.checkpoint is None:
            return {}
        return fit_identity(type(self).__name__, self.get_params(deep=False), train)

    def _logits(self, instances: Tensor, bags: Bags | None = None) -> Tensor:
        """Scores of instances, in evaluation mode, some at a time; of bags from a network that pools, if given."""
        network = self.network_.eval()
        with torch.no_grad():
            if bags is not None:
                return network_logits(network, instances[bags.index], bags.offsets)
            return torch.cat([network_logits(network, part) for part in instances.split(CHUNK)])

    def _bag_logits(self, X: Any, groups: Any) -> tuple[Tensor, Bags]:
        """Log-odds of instances in float64, one bag after the other, and the bags."""
        instances = self._instances(X)
        bags = bags_of(groups, len(instances))
        return self._logits(instances).double()[bags.index], bags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")  # after a fit that failed there are other attributes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def posteriors(objective: Any, logits: Tensor, labels: Tensor, bags: Bags) -> Tensor:
    """P(y_i = 1 | what is said of the bag) for each entry of `bags.index`.

    For every statement, d log P(statement) / dx_i = P(y_i = 1 | statement) - p_i: the gradient of its loss has it.
    """
    x = logits.detach().requires_grad_()
    with torch.enable_grad():
        total = objective(x, labels, bags.offsets).sum()
    (slope,) = torch.autograd.grad(total, x)
    return (x.detach().sigmoid() - slope).clamp(0.0, 1.0)  # rounding may leave the interval by 1e-16
