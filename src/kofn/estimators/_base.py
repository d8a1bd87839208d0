"""What the three estimators share: training, scores of instances, laws of counts, saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from kofn.bags import Bags
from kofn.batches import BagDataset, PUDataset
from kofn.counts import log_count_distribution
from kofn.estimators._labels import Array, bags_of
from kofn.estimators._network import make_network
from kofn.estimators._saving import load, save
from kofn.models import AttentionMIL

CHUNK = 16384  # instances scored at a time
Self = TypeVar("Self", bound="CountClassifier")


class CountClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An instance classifier that is trained on counts. Use `LLPClassifier`, `MILClassifier` or `PUClassifier`."""

    classes_: Array
    network_: nn.Module
    module: Any
    loss: str
    hidden: Any
    dropout: float
    epochs: int
    lr: float
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

    def score(self, X: Any, y: Any) -> float:
        """Share of instances whose true class is predicted."""
        return float(accuracy_score(y, self.predict(X)))

    def predict_bag_proba(self, X: Any, groups: Any) -> NDArray[np.float64]:
        """The exact law of each bag's number of positives.

        Args:
            X: (n, ...) instances.
            groups: (n,) the bag of each instance; bags come in the order in which they first appear.

        Returns:
            (bags, largest bag + 1): P(S = k) in column k, 0 past a bag's size.
        """
        logits, bags = self._bag_logits(X, groups)
        law = log_count_distribution(logits, offsets=bags.offsets).exp()
        table = torch.zeros(len(bags), int(bags.sizes.max()) + 1, dtype=torch.float64)
        counts = bags.sizes + 1
        column = torch.arange(len(law)) - (counts.cumsum(0) - counts).repeat_interleave(counts)
        table[torch.arange(len(bags)).repeat_interleave(counts), column] = law
        return table.numpy()

    def predict_bags(self, X: Any, groups: Any) -> Array:
        """The most probable number of positives in each bag, (bags,), in the order in which bags first appear."""
        most: Array = self.predict_bag_proba(X, groups).argmax(1)
        return most

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a folder: weights as safetensors, the rest as JSON; see `kofn.estimators.load`.

        The folder appears whole or not at all. A network or factory of your own is code, which is not saved: give it
        again when loading.

        Raises:
            sklearn.exceptions.NotFittedError: nothing to save.
            ValueError: `path` is something else than a model.
        """
        check_is_fitted(self)
        save(self, Path(path))

    @classmethod
    def load(cls: type[Self], path: str | Path, *, module: Any = None) -> Self:
        """Read an estimator of this class from a folder written by `save`.

        Args:
            path: the folder.
            module: the network or factory that it was trained with, if that was not a name.

        Raises:
            FileNotFoundError, ValueError: no such model; one of another class or a newer version; altered or cut files.
        """
        loaded: Self = load(Path(path), kinds=[cls], module=module)
        return loaded

    # What follows is for the estimators themselves.

    def _check_training(self, X: Any, y: Any, **checks: Any) -> tuple[Tensor, Array]:
        """Instances as float32 and labels as an array, without NaN."""
        instances, labels = validate_data(self, X, y, dtype=np.float32, allow_nd=True, ensure_min_samples=1, **checks)
        return torch.from_numpy(np.ascontiguousarray(instances)), np.asarray(labels)

    def _instances(self, X: Any) -> Tensor:
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float32, allow_nd=True, reset=False)
        return torch.from_numpy(np.ascontiguousarray(rows))

    def _new_network(self, shape: tuple[int, ...]) -> nn.Module:
        return make_network(self.module, shape, hidden=self.hidden, dropout=self.dropout)

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
    ) -> None:
        """Fit a new network, or the one before with `warm_start`, and keep what became of it."""
        from kofn import training  # brings Lightning: only when something is fitted

        shape = tuple(train.instances.shape[1:])
        again = self.warm_start and getattr(self, "instance_shape_", None) == shape
        with torch.random.fork_rng(devices=[]):  # torch's own stream stays as it was
            torch.manual_seed(seed)
            network = self.network_ if again else self._new_network(shape)
            module = training.CountModule(
                network,
                objective,
                rule=rule,
                lr=self.lr,
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
        self.instance_shape_ = shape
        self.history_, self.best_epoch_ = module.history, module.best_epoch

    def _bags_in_a_step(self) -> dict[str, Any]:
        limit = self.max_instances
        return {"batch_size": self.batch_size if limit is None else None, "max_instances": limit}

    def _identity(self, train: BagDataset | PUDataset) -> dict[str, str]:
        """What must be the same for a checkpoint to be of this fit; more epochs are welcome."""
        free = {"epochs", "patience", "warm_start", "device", "progress", "checkpoint", "trainer", "random_state"}
        chosen = {name: str(value) for name, value in self.get_params(deep=False).items() if name not in free}
        return chosen | {"class": type(self).__name__, "instances": str(tuple(train.instances.shape))}

    def _logits(self, instances: Tensor, bags: Bags | None = None) -> Tensor:
        """Scores of instances, in evaluation mode, some at a time; of bags from a network that pools, if given."""
        network = self.network_.eval()
        with torch.no_grad():
            if isinstance(network, AttentionMIL):
                if bags is not None:
                    return _flat(network(instances[bags.index], offsets=bags.offsets))
                chunks = [network(part[:, None]) for part in instances.split(CHUNK)]
            else:
                chunks = [network(part) for part in instances.split(CHUNK)]
        return torch.cat([_flat(chunk) for chunk in chunks])

    def _bag_logits(self, X: Any, groups: Any) -> tuple[Tensor, Bags]:
        """Log-odds of instances in float64, one bag after the other, and the bags."""
        instances = self._instances(X)
        bags = bags_of(groups, len(instances))
        return self._logits(instances).double()[bags.index], bags

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


def _flat(output: Tensor) -> Tensor:
    return output.squeeze(-1) if output.dim() == 2 else output
