"""Learning from label proportions, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Laplace, Normal

from kofn import _require
from kofn.bags import Bags
from kofn.estimators._count_classifier import CountClassifier, posteriors
from kofn.estimators._row_labels import (
    Array,
    bag_weights,
    bags_of,
    numbers,
    proportions,
    require_groups,
    rows_of,
    whole_counts,
)
from kofn.learners import (
    ContaminationObjective,
    CountObjective,
    Learner,
    Problem,
    Progress,
    ProportionObjective,
    between,
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


class LLPClassifier(CountClassifier):
    """Learns to classify instances from the proportion of positives in each bag.

    Args:
        learner: what is fitted: "auto" (trees for tables, a network for images), "trees", "linear", "network", a
            learner with its options, such as ``kofn.Trees(rounds=200)`` or ``kofn.EM(classifier)``, or a
            `torch.nn.Module`.
        loss: "count", -log P(S = count); "proportion", the cross-entropy of the mean; "mutual-contamination", LMMCM.
        label: what `y` says of a row's bag: its "proportion" of positives (or, without groups, the row's class), its
            "count", or the "interval" (n, 2) in which its count lies, ends included.
        rounding: for proportions that are no whole count of their bag: "error", "nearest", or "spread" over the two
            counts beside.
        noise: distribution of the noise that was added to the counts: "laplace:SCALE", "normal:SD",
            "discrete-laplace:SCALE", or any noise that `kofn.Noisy` takes. With it, `y` may be any number.
        progress: called while the learner learns, with what is being done, how many steps are done, of how many, and
            the losses.
        random_state: int or `numpy.random.RandomState`; with an int two fits are identical. None takes a seed from
            numpy's own stream, as in scikit-learn.

    Attributes:
        classes_: the two classes; the second is positive.
        fitted_: what the learner made.
        fitted_learner_: the learner that made it, with its options, also where it was named by a word.
        rate_: the base rate: the probability of a positive before anything is learned.
        history_: a dict for each step of the learner: its number (epoch, round or penalty), train_loss, val_loss.
        best_step_: the number of the step that was taken, counted from 1; None where nothing was held out.
        held_out_: (k,) bags that were validated on, by the order in which they first appear.
        held_out_logits_: (n,) log-odds of their instances by models that had not seen them, NaN elsewhere.
        validation_loss_: mean loss of these bags.
        baselines_: mean losses of the same bags by a model without features, and by one of the means of bags.
        feature_importances_: of trees.
        network_: of a network.
        n_features_in_: as in scikit-learn.
        feature_names_in_: as in scikit-learn, of a DataFrame.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(800, 2))
        >>> truth, groups = X[:, 0] > 0, np.repeat(np.arange(200), 4)
        >>> y = truth.reshape(200, 4).mean(1).repeat(4)  # the bag's proportion, on each of its rows
        >>> model = kofn.LLPClassifier(random_state=0).fit(X, y, groups=groups)
        >>> bool((model.predict(X) == truth).mean() > 0.95)
        True
        >>> model.validation_loss_ < model.baselines_["no features"]
        True

    Reference:
        Shukla, Zeng, Ahmed, Van den Broeck. A Unified Approach to Count-Based Weakly-Supervised Learning.
        NeurIPS 2023.
    """

    # Pipelines and searches hand these on without set_fit_request(groups=True).
    __metadata_request__fit = {"groups": True, "copies": True, "bag_weight": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True, "copies": True}  # noqa: RUF012
    LOSSES = ("count", "proportion", "mutual-contamination")

    def __init__(
        self,
        learner: str | Learner | nn.Module = "auto",
        *,
        loss: Literal["count", "proportion", "mutual-contamination"] = "count",
        label: Literal["proportion", "count", "interval"] = "proportion",
        rounding: Literal["error", "nearest", "spread"] = "error",
        noise: str | Callable[[Tensor], Tensor] | torch.distributions.Distribution | None = None,
        progress: Progress | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learner = learner
        self.loss = loss
        self.label = label
        self.rounding = rounding
        self.noise = noise
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None, copies: Any = None, *, bag_weight: Any = None) -> LLPClassifier:
        """Learn from bags.

        Args:
            X: (n, features) numbers, NaN where a value is missing; a DataFrame, of which text and categories are taken
                too; or (n, ...) for a network that takes more dimensions.
            y: (n,) the label of each row's bag, the same on all rows of a bag.
            groups: (n,) the bag of each row, any hashable; None makes each row its own bag, and this ordinary
                classification.
            copies: (n,) how many times each row is in its bag, whole numbers; by default once.
            bag_weight: (n,) weight of the loss of each row's bag, the same on all rows of a bag; by default 1.

        Returns:
            The estimator itself.

        Raises:
            ValueError: a group with two different labels; a label that its bag cannot have; NaN in y; a network that
                does not take the instances; options out of range.
        """
        return self._fit(*self._problem(X, y, groups, copies, bag_weight), self._seed())

    def _problem(
        self, X: Any, y: Any, groups: Any, copies: Any = None, bag_weight: Any = None
    ) -> tuple[Problem, Array]:
        """What a learner is given, and the two classes; arguments as for `fit`."""
        self._check_options()
        instances, labels = self._check_training(X, y, multi_output=self.label == "interval")
        bags = bags_of(groups, len(instances), copies)
        classes, stated, objective, counts = self._statement(labels, bags)
        shares = (counts / bags.sizes).clamp(0.0, 1.0)
        weight = bag_weights(bag_weight, bags, len(instances), name="bag_weight")
        times = bags.sizes if weight is None else bags.sizes * weight
        rate = float((shares * times).sum() / times.sum())
        half = 0.5 / float(bags.sizes[times > 0].sum())  # a rate that is 0 or 1 is only known to be near it
        problem = Problem(
            instances=instances,
            bags=bags,
            labels=stated,
            objective=self._objective(objective),
            rate=min(max(rate, half), 1 - half),
            proportions=shares,
            weight=weight,
            **self._problem_of_table(),
        )
        return problem, classes

    def posterior_proba(self, X: Any, y: Any, groups: Any = None, copies: Any = None) -> NDArray[np.float64]:
        """Probability of each instance to be of each class, given what is known of its bag: P(y_i | label of the bag).

        What the labels of training data still tell about their instances once a network is trained. Of a bag whose
        count is known the second column sums to that count.

        Args:
            X: (n, ...) instances.
            y: (n,) labels as for `fit`.
            groups: (n,) as for `fit`.
            copies: (n,) as for `fit`. All copies of an instance have the same posterior; one that is in no bag has
                its probability.

        Returns:
            (n, 2).
        """
        logits = torch.from_numpy(self.decision_function(X))
        bags = bags_of(groups, len(logits), copies)
        _, stated, objective, _ = self._statement(rows_of(y, len(logits)), bags, self.classes_)
        positive = logits.sigmoid()
        positive[bags.index] = posteriors(objective, logits[bags.index], stated, bags)
        return torch.stack([1 - positive, positive], 1).numpy()

    def score(self, X: Any, y: Any, groups: Any = None, copies: Any = None, *, sample_weight: Any = None) -> float:
        """Without groups the share of right classes; with groups the mean over bags of log P(label of the bag).

        Of intervals and noisy counts the latter, with and without groups. Weights, (n,), are repeated on the rows of a
        bag, as labels are.
        """
        if groups is None and copies is None and self.label != "interval" and self.noise is None:
            return super().score(X, y, sample_weight=sample_weight)
        logits, bags = self._bag_logits(X, groups, copies)
        rows = len(X)
        _, stated, objective, _ = self._statement(rows_of(y, rows), bags, self.classes_)
        losses = objective(logits, stated, bags.offsets).numpy()
        weights = bag_weights(sample_weight, bags, rows, name="sample_weight")
        return -float(np.average(losses, weights=weights))

    def _check_options(self) -> None:
        super()._check_options()
        _require.option("label", self.label, ("proportion", "count", "interval"))
        _require.option("rounding", self.rounding, ("error", "nearest", "spread"))
        if self.noise is not None and self.label == "interval":
            raise ValueError("`noise` goes with label='count' or 'proportion'; an interval says all that it can mean.")

    def _statement(self, y: Array, bags: Bags, classes: Array | None = None) -> tuple[Array, Tensor, Any, Tensor]:
        """The two classes, those given if any; the label of each bag, the count loss that reads it, about its count."""
        zero_one = np.array([0, 1])
        if self.label == "interval":
            bounds = bags.common(whole_counts(y), name="y")
            with _naming_y():
                from_bounds(bounds, bags.sizes, names=bags.names)
            return zero_one, bounds, CountObjective(between), bounds.double().mean(1)
        if self.label == "proportion" and self.noise is None:
            together = bool((bags.sizes > 1).any())
            classes, values = proportions(y, together=together, classes=classes)
            if not together and self.rounding == "error":
                require_groups(values)
            shares = bags.common(values, name="y")
            with _naming_y():
                target = from_proportions(shares, bags.sizes, rounding=self.rounding, names=bags.names)
            counts = torch.as_tensor(target.counts)
            return classes, counts, CountObjective(type(target)), counts.double()
        if self.noise is not None:
            law = noise_law(self.noise)
            known = bags.common(numbers(y), name="y")
            if self.label == "proportion":
                known = counts_of_proportions(known, bags.sizes, noisy=True)
            return zero_one, known, CountObjective(partial(Noisy, noise=law)), known.double()
        counts = bags.common(whole_counts(y), name="y")
        with _naming_y():
            from_counts(counts, bags.sizes, names=bags.names)
        return zero_one, counts, CountObjective(Exactly), counts.double()

    def _objective(self, count: Any) -> Any:
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
