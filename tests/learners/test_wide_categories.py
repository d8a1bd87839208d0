"""Thousands of categories: a column of 0 and 1 for each is never made for all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from learner_cases import some_bags
from torch import nn

import kofn
from kofn.bags import Bags
from kofn.learners import Problem
from kofn.learners._design import Design, Features
from kofn.learners._loop import CHUNK
from kofn.learners._perceptron import TableLinear

SITES = 700


def impressions(rows: int = 2000) -> Problem:
    rng = np.random.default_rng(0)
    sites = rng.integers(0, SITES, rows).astype(np.float32)
    sites[::50] = np.nan
    table = np.column_stack([rng.normal(size=rows), sites, rng.integers(0, 3, rows)]).astype(np.float32)
    bags = Bags.from_sizes([10] * (rows // 10))
    counts = bags.sum(torch.from_numpy(table[:, 0] + 0.5 * (table[:, 2] == 1) > 0.5).long())
    return replace(
        some_bags(),
        instances=table,
        bags=bags,
        labels=counts,
        proportions=counts / 10,
        rate=float(counts.sum()) / rows,
        categories={1: SITES, 2: 3},
    )


def test_places_are_columns_of_zeros_and_ones() -> None:
    problem = impressions(200)
    design = Design.learn(problem.instances, problem.categories)
    features, dense = design.features(problem.instances), torch.from_numpy(design(problem.instances)).double()
    for shape in ((), (4,)):
        weights, slope = torch.randn(design.width, *shape).double(), torch.randn(200, *shape).double()
        torch.testing.assert_close(features.times(weights), dense @ weights)
        torch.testing.assert_close(features.transposed_times(slope), dense.T @ slope)


def test_a_layer_of_places_is_a_linear_layer() -> None:
    problem = impressions(200)
    design = Design.learn(problem.instances, problem.categories)
    layer = TableLinear(design.dense_width, design.width - design.dense_width, 5)
    linear = nn.Linear(design.width, 5)
    with torch.no_grad():
        linear.weight.copy_(torch.cat([layer.weight, layer.embedding.T], 1))
        linear.bias.copy_(layer.bias)
    by_places = layer(torch.from_numpy(design.by_places(problem.instances)))
    torch.testing.assert_close(by_places, linear(torch.from_numpy(design(problem.instances))))


LEARNERS: dict[str, Any] = {
    "linear": kofn.Linear(),
    "embedded": kofn.Network(hidden=(8,), epochs=3),
    "lazy": kofn.Network(hidden=(), epochs=3),
    "own": kofn.Network(lambda features: nn.Sequential(nn.Linear(features, 4), nn.ReLU(), nn.Linear(4, 1)), epochs=3),
}


@pytest.mark.parametrize("learner", LEARNERS)
def test_no_column_for_each_category_of_all_rows(learner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = impressions(20_000)
    made: list[int] = []
    dense = Features.dense

    def watched(features: Features) -> torch.Tensor:
        made.append(len(features))
        return dense(features)

    monkeypatch.setattr(Features, "dense", watched)
    fitted = LEARNERS[learner].fit(problem, seed=0)
    assert np.isfinite(fitted.logits(problem.instances)).all()
    assert max(made, default=0) <= CHUNK
    assert (made == []) == (learner in ("linear", "embedded"))


def test_a_network_of_places_is_saved_and_loaded(tmp_path: Any) -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=4000), "site": rng.integers(0, SITES, 4000).astype(str)})
    groups = np.repeat(np.arange(400), 10)
    y = (frame.x.to_numpy() > 0).reshape(400, 10).sum(1).repeat(10)
    network = kofn.Network(hidden=(8,), epochs=15, lr=0.01)
    model = kofn.LLPClassifier(network, label="count", max_categories=1000, random_state=0).fit(frame, y, groups=groups)
    assert isinstance(next(model.network_.children()), TableLinear)
    model.save(tmp_path / "model")
    loaded = kofn.LLPClassifier.load(tmp_path / "model")
    new = frame.assign(site=["elsewhere"] * 4000)
    assert np.array_equal(loaded.decision_function(new), model.decision_function(new))


def test_as_many_categories_as_are_allowed() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": np.arange(600.0), "site": np.arange(600).astype(str)})
    y, groups = np.repeat(np.arange(150) % 2, 4), np.repeat(np.arange(150), 4)
    with pytest.raises(ValueError, match=r"allow more categories \(`max_categories`\)"):
        kofn.MILClassifier("linear").fit(frame, y, groups=groups)
    kofn.MILClassifier(kofn.Linear(l2=1.0), max_categories=600).fit(frame, y, groups=groups)
