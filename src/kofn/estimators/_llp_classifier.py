"""Learning from label proportions, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Laplace, Normal

from kofn import _require
from kofn.bags import Bags
from kofn.batches import BagDataset
from kofn.estimators._count_classifier import CountClassifier, posteriors
from kofn.estimators._network import Module
from kofn.estimators._row_labels import (
    Array,
    bag_weights,
    bags_of,
    hold_out,
    numbers,
    proportions,
    require_groups,
    rows_of,
    whole_counts,
)
from kofn.targets import (
    DiscreteLaplace,
    Exactly,
    Noisy,
    Spread,
    counts_of_proportions,
    from_bounds,
    from_counts,
    from_proportions,
)

LOSSES = ("count", "proportion", "mutual-contamination")


class LLPClassifier(CountClassifier):
    """Learns to classify instances from the proportion of positives in each bag.

    Args:
        module: the network of instances: "mlp", another name of `kofn.models`, a `torch.nn.Module` (copied), or a
            factory of one, called with the number of features (of images: of channels) if it takes an argument.
        loss: "count", -log P(S = count); "proportion", the cross-entropy of the mean; "mutual-contamination", LMMCM.
        label: what `y` says of a row's bag: its "proportion" of positives (or, without groups, the row's class), its
            "count", or the "interval" (n, 2) in which its count lies, ends included.
        rounding: for proportions that are no whole count of their bag: "error", "nearest", or "spread" over the two
            counts beside.
        noise: law of the noise that was added to the counts: "laplace:SCALE", "normal:SD", "discrete-laplace:SCALE",
            or any noise that `kofn.Noisy` takes. With it, `y` may be any number.
        hidden: widths of the hidden layers of "mlp".
        dropout: of "mlp".
        epochs: at most so many.
        lr: learning rate of Adam.
        schedule: of the learning rate over all epochs: "constant"; "cosine", down to 0, so that the last batches leave
            less noise in the weights; "one-cycle", up from 0 and down, for large bags, whose loss is steep at first.
        weight_decay: of Adam.
        l1: factor of the sum of absolute weights.
        batch_size: bags in a step; by default a sixteenth of them, at most 64.
        max_instances: instances in a batch at most, in place of `batch_size`.
        accumulate: batches in a step, if a step of `batch_size` bags is too large for memory.
        validation_fraction: part of the bags to hold out, on which the best epoch is chosen; rounded down to whole
            bags. With none, all bags train and the last epoch's weights are taken.
        patience: stop after so many epochs without a better one; None trains all epochs.
        warm_start: start the next fit from the weights of the last, if they are of the same shapes.
        device: Lightning's accelerator: "cpu", "gpu", "auto".
        precision: Lightning's precision of the network, such as "bf16-mixed".
        progress: show a progress bar.
        checkpoint: folder for a checkpoint after each epoch; the same fit, cut off, goes on from there, bit for bit.
            It needs an int as `random_state`.
        trainer: further options of `lightning.pytorch.Trainer`, such as ``{"devices": 2, "strategy": "ddp"}``.
        random_state: int or `numpy.random.RandomState`; with an int two fits are identical. None takes a seed from
            numpy's own stream, as in scikit-learn.

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
        >>> X = rng.normal(size=(400, 2))
        >>> truth, groups = X[:, 0] > 0, np.repeat(np.arange(100), 4)
        >>> y = truth.reshape(100, 4).mean(1).repeat(4)  # the bag's proportion, on each of its rows
        >>> model = kofn.LLPClassifier(hidden=(16,), lr=0.01, epochs=30, random_state=0).fit(X, y, groups=groups)
        >>> bool((model.predict(X) == truth).mean() > 0.95)
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
        loss: Literal["count", "proportion", "mutual-contamination"] = "count",
        label: Literal["proportion", "count", "interval"] = "proportion",
        rounding: Literal["error", "nearest", "spread"] = "error",
        noise: str | Callable[[Tensor], Tensor] | torch.distributions.Distribution | None = None,
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
        self.label = label
        self.rounding = rounding
        self.noise = noise
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

    def fit(self, X: Any, y: Any, groups: Any = None) -> LLPClassifier:
        """Train on bags.

        Args:
            X: (n, features) numbers, a DataFrame too, whose column names are kept; or (n, ...) for a network that takes
                more dimensions.
            y: (n,) the label of each row's bag, the same on all rows of a bag.
            groups: (n,) the bag of each row, any hashable; None makes each row its own bag, and this ordinary
                classification.

        Returns:
            The estimator itself.

        Raises:
            ValueError: a group with two different labels; a label that its bag cannot have; NaN in X or y; a network
                that does not take the instances; options out of range.
        """
        self._check_options()
        instances, labels = self._check_training(X, y, multi_output=self.label == "interval")
        bags = bags_of(groups, len(instances))
        classes, stated, objective = self._statement(labels, bags)
        seed = self._seed()
        chosen, held = hold_out(torch.zeros(len(bags)), self.validation_fraction, seed)
        self.held_out_ = held.numpy()
        self._train(
            BagDataset(instances, bags.select(chosen), stated[chosen]),
            BagDataset(instances, bags.select(held), stated[held]) if len(held) else None,
            self._objective(objective),
            batches=self._batch_options(len(chosen)),
            seed=seed,
        )
        self.classes_ = classes
        return self

    def posterior_proba(self, X: Any, y: Any, groups: Any = None) -> NDArray[np.float64]:
        """Probability of each instance to be of each class, given what is known of its bag: P(y_i | label of the bag).

        What the labels of training data still tell about their instances once a network is trained. Of a bag whose
        count is known the second column sums to that count.

        Args:
            X: (n, ...) instances.
            y: (n,) labels as for `fit`.
            groups: (n,) as for `fit`.

        Returns:
            (n, 2).
        """
        logits, bags = self._bag_logits(X, groups)
        _, stated, objective = self._statement(rows_of(y, len(logits)), bags, self.classes_)
        positive = torch.empty(len(bags.index), dtype=torch.float64)
        positive[bags.index] = posteriors(objective, logits, stated, bags)
        return torch.stack([1 - positive, positive], 1).numpy()

    def score(self, X: Any, y: Any, groups: Any = None, *, sample_weight: Any = None) -> float:
        """Without groups the share of right classes; with groups the mean over bags of log P(label of the bag).

        Of intervals and noisy counts the latter, with and without groups. Weights, (n,), are repeated on the rows of a
        bag, as labels are.
        """
        if groups is None and self.label != "interval" and self.noise is None:
            return super().score(X, y, sample_weight=sample_weight)
        logits, bags = self._bag_logits(X, groups)
        _, stated, objective = self._statement(rows_of(y, len(logits)), bags, self.classes_)
        losses = objective(logits, stated, bags.offsets).numpy()
        return -float(np.average(losses, weights=bag_weights(sample_weight, bags)))

    def _check_options(self) -> None:
        super()._check_options()
        _require.option("loss", self.loss, LOSSES)
        _require.option("label", self.label, ("proportion", "count", "interval"))
        _require.option("rounding", self.rounding, ("error", "nearest", "spread"))
        if self.noise is not None and self.label == "interval":
            raise ValueError("`noise` goes with label='count' or 'proportion'; an interval says all that it can mean.")

    def _statement(self, y: Array, bags: Bags, classes: Array | None = None) -> tuple[Array, Tensor, Any]:
        """The two classes, those given if any, the label of each bag, and the count loss that reads it."""
        from kofn.training import CountObjective, between

        zero_one = np.array([0, 1])
        if self.label == "interval":
            bounds = bags.common(whole_counts(y), name="y")
            with _naming_y():
                from_bounds(bounds, bags.sizes, names=bags.names)
            return zero_one, bounds, CountObjective(between)
        if self.label == "proportion" and self.noise is None:
            together = bool((bags.sizes > 1).any())
            classes, values = proportions(y, together=together, classes=classes)
            if not together and self.rounding == "error":
                require_groups(values)
            shares = bags.common(values, name="y")
            with _naming_y():
                target = from_proportions(shares, bags.sizes, rounding=self.rounding, names=bags.names)
            return classes, torch.as_tensor(target.counts), CountObjective(type(target))
        if self.noise is not None:
            law = noise_law(self.noise)
            known = bags.common(numbers(y), name="y")
            if self.label == "proportion":
                known = counts_of_proportions(known, bags.sizes, noisy=True)
            return zero_one, known, CountObjective(partial(Noisy, noise=law))
        counts = bags.common(whole_counts(y), name="y")
        with _naming_y():
            from_counts(counts, bags.sizes, names=bags.names)
        return zero_one, counts, CountObjective(Exactly)

    def _objective(self, count: Any) -> Any:
        from kofn.training import ContaminationObjective, ProportionObjective

        if self.loss == "count":
            return count
        if count.target not in (Exactly, Spread):
            raise ValueError(
                f"`loss` must be 'count' for intervals and noisy counts; got {self.loss!r}, which needs a proportion."
            )
        return ProportionObjective() if self.loss == "proportion" else ContaminationObjective()


@contextmanager
def _naming_y() -> Iterator[None]:
    """Add the name of the argument to what `kofn.targets` says of a label."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"`y`: {error}") from None


def noise_law(noise: Any) -> Any:
    """A law from its name and scale, such as "laplace:1.5"; anything else as it is."""
    if not isinstance(noise, str):
        return Noisy(0.0, noise).noise  # which says what may be wrong with it
    name, _, text = noise.partition(":")
    laws: dict[str, Callable[[float], Any]] = {
        "laplace": lambda width: Laplace(0.0, width),
        "normal": lambda width: Normal(0.0, width),
        "discrete-laplace": DiscreteLaplace,
    }
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if name not in laws or not 0 < scale < np.inf:
        raise ValueError(
            f"`noise` must be a law and its scale, such as 'laplace:1.5', 'normal:2' or 'discrete-laplace:1'; "
            f"got {noise!r}."
        )
    return laws[name](scale)
