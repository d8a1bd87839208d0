"""Several classes: the learner of one logit is the learner of C; two classes are what they were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from class_cases import class_problem
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

import kofn
from kofn import learners
from kofn.learners import CountObjective, Problem, ProportionObjective, TransportObjective
from kofn.learners._surrogate import curvature, surrogate
from kofn.learners._tree_text import require_sound_trees

QUICK: dict[str, Any] = {
    "trees": kofn.Trees(rounds=40, min_rows=5),
    "linear": kofn.Linear(l2=1e-3),
    "network": kofn.Network(hidden=(16,), epochs=40, lr=0.02),
    "em": kofn.EM(LogisticRegression(C=10.0), rounds=10),
}


def two_classes(bags: int = 60) -> tuple[Problem, Problem]:
    """One problem twice: with the log-odds of the second class, and with a logit of both."""
    several = class_problem(bags, classes=2)
    assert isinstance(several.rate, Tensor)
    binary = replace(
        several,
        labels=several.labels[:, 1],
        proportions=several.proportions[:, 1],
        rate=float(several.rate[1]),
        objective=CountObjective(),
    )
    return binary, several


@pytest.mark.parametrize("learner", QUICK.values(), ids=QUICK)
@pytest.mark.parametrize(
    "objective",
    [CountObjective(kofn.ClassCounts), CountObjective(kofn.MarginalClassCounts), ProportionObjective()],
    ids=["joint", "marginal", "proportion"],
)
def test_every_learner_learns_every_loss(learner: Any, objective: Any) -> None:
    problem = replace(class_problem(100), objective=objective)
    fitted = learner.fit(problem, seed=0)
    logits = fitted.logits(problem.instances)
    assert logits.shape == (len(problem.instances), 3)
    assert logits.dtype == np.float64
    assert (logits.argmax(1) == problem.instances[:, :3].argmax(1)).mean() > 0.8
    assert problem.mean_loss(torch.from_numpy(logits)) < problem.mean_loss(problem.start.expand(len(logits), 3))


def test_transport_is_learned_too() -> None:
    problem = replace(class_problem(100), objective=TransportObjective())
    logits = kofn.Linear(l2=1e-3).fit(problem, seed=0).logits(problem.instances)
    assert (logits.argmax(1) == problem.instances[:, :3].argmax(1)).mean() > 0.8


@pytest.mark.parametrize("learner", [kofn.Trees(max_rounds=10), kofn.Linear(penalties=(0.1, 0.01))], ids=type)
def test_held_out_bags_are_scored_by_models_that_had_not_seen_them(learner: Any) -> None:
    problem = class_problem(60)
    fitted = learner.fit(problem, seed=0)
    assert fitted.held_out_logits is not None
    assert fitted.held_out_logits.shape == (len(problem.instances), 3)
    loss = float(problem.mean_loss(torch.from_numpy(fitted.held_out_logits)))
    assert loss == pytest.approx(fitted.validation_loss, rel=0.02)  # means of folds, whose sizes may differ by a bag


def test_linear_of_two_classes_is_the_binary_one() -> None:
    """Weights of two classes are minus each other: half the difference each, and so half the penalty."""
    binary, several = two_classes()
    one = kofn.Linear(l2=0.01, max_steps=1000).fit(binary, seed=0).logits(binary.instances)
    two = kofn.Linear(l2=0.02, max_steps=1000).fit(several, seed=0).logits(several.instances)
    np.testing.assert_allclose(two[:, 1] - two[:, 0], one, atol=0.02)


def test_em_of_two_classes_is_the_binary_one() -> None:
    binary, several = two_classes()
    em = kofn.EM(LogisticRegression(), rounds=5)
    one, two = (em.fit(problem, seed=0).logits(binary.instances) for problem in (binary, several))
    np.testing.assert_allclose(two[:, 1] - two[:, 0], one, atol=1e-3)


def test_the_curvature_of_two_classes_gives_the_binary_step() -> None:
    binary, several = two_classes()
    x = torch.randn(len(binary.instances), 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (loss, slope), (same, slopes) = binary.losses_and_slope(x[:, 1] - x[:, 0]), several.losses_and_slope(x)
    torch.testing.assert_close(loss, same)
    torch.testing.assert_close(slopes, torch.stack([-slope, slope], 1))
    steps = slopes / curvature(x, slopes, several.row_weights)
    step = slope / curvature(x[:, 1] - x[:, 0], slope, binary.row_weights)
    torch.testing.assert_close(steps[:, 1] - steps[:, 0], step)


def test_targets_of_a_count_are_posteriors() -> None:
    problem = class_problem(20)
    x = torch.randn(len(problem.instances), 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    _, slope = problem.losses_and_slope(x)
    target, weight = surrogate(x, slope, problem.row_weights)
    expected = kofn.class_count_posteriors(x, problem.labels, offsets=problem.bags.offsets)
    torch.testing.assert_close(target, expected)
    torch.testing.assert_close(weight, torch.ones_like(weight))
    torch.testing.assert_close(weight[:, None] * (x.softmax(1) - target), slope)
    equal = torch.zeros(5, 4, dtype=torch.float64)  # H = 1 / C on slopes that sum to 0
    torch.testing.assert_close(curvature(equal, equal, torch.ones(5)), torch.full((5, 4), 0.25, dtype=torch.float64))


def test_a_round_of_trees_is_a_tree_for_each_class() -> None:
    problem = class_problem(40)
    fitted = kofn.Trees(rounds=7).fit(problem, seed=0)
    assert fitted.booster is not None
    assert fitted.booster.num_trees() == 21
    assert len(fitted.history) == 7
    require_sound_trees(fitted.text, classes=3)
    for wrong in (1, 2, 4):
        with pytest.raises(ValueError, match=f"they must give {wrong} score"):
            require_sound_trees(fitted.text, classes=wrong)


def test_columns_that_cannot_be_split_have_the_base_rates() -> None:
    problem = class_problem(40)
    fitted = kofn.Trees().fit(replace(problem, instances=np.ones_like(problem.instances)), seed=0)
    found = torch.from_numpy(fitted.logits(np.zeros((2, 4), np.float32)))
    torch.testing.assert_close(found, problem.start.expand(2, 3))


def test_a_network_of_your_own_has_an_output_for_each_class() -> None:
    problem = class_problem(40)
    own = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    assert kofn.Network(own, epochs=2).fit(problem, seed=0).logits(problem.instances).shape == (
        len(problem.instances),
        3,
    )
    with pytest.raises(ValueError, match=r"a logit of each class for each instance, shape \(m, 3\).*shape \(2,\)"):
        kofn.Network(learners.mlp(4), epochs=2).fit(problem, seed=0)
    with pytest.raises(ValueError, match=r"`start` must be 'rate' or None for several classes; got 0\.5"):
        kofn.Network(start=0.5).fit(problem, seed=0)


def test_a_network_starts_at_the_rates_of_the_classes() -> None:
    rates = torch.tensor([0.5, 0.3, 0.2])
    network = learners.start_at_rate(learners.mlp(3, classes=3), rates)
    torch.testing.assert_close(network(torch.zeros(3)).detach().softmax(0), rates)
    with pytest.raises(ValueError, match="the network has 3 classes"):
        learners.start_at_rate(learners.mlp(3, classes=3), 0.5)
    with pytest.raises(ValueError, match="`rate` must be above 0 and below 1"):
        learners.start_at_rate(learners.mlp(3, classes=3), torch.tensor([0.5, 0.5, 0.0]))
    with pytest.raises(ValueError, match="the network has one logit"):
        learners.start_at_rate(learners.mlp(3), rates)


def test_what_is_held_out_of_single_instances_is_held_out_of_each_class() -> None:
    problem = class_problem(10)
    assert problem.strata.tolist() == [0] * 10
    single = kofn.Bags.from_sizes([1] * 4)
    shares = torch.eye(3, dtype=torch.float64)[[2, 0, 1, 1]]
    assert replace(problem, bags=single, proportions=shares).strata.tolist() == [2, 0, 1, 1]
