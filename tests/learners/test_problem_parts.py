"""A problem in parts is the problem: its losses, gradients and bins are those of the whole."""

from __future__ import annotations

from pathlib import Path

import lightgbm
import numpy as np
import pytest
import torch

import kofn
from kofn._io import mapped
from kofn.learners import BagObjective, ContaminationObjective, CountObjective, Problem, ProportionObjective
from kofn.learners._binning import binned
from kofn.learners._boosting import boosting_gradient
from kofn.learners._problem_parts import mean_loss, parts_of

RNG = np.random.default_rng(0)


def problem(sizes: list[int], copies: bool = False, **options: object) -> Problem:
    bags = kofn.Bags.from_sizes(sizes)
    rows = len(bags.index)
    if copies:
        bags = kofn.Bags(bags.index.repeat_interleave(2), 2 * bags.offsets)
    counts = torch.from_numpy(RNG.integers(0, bags.sizes.numpy() + 1))
    given = {"labels": counts, "objective": CountObjective(), "proportions": counts / bags.sizes} | options
    return Problem(instances=np.zeros((rows, 2), np.float32), bags=bags, rate=0.3, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("rows", [1, 7, 10, 50, 1000])
def test_parts_are_the_problem(rows: int, copies: bool) -> None:
    sizes = RNG.integers(1, 12, 60).tolist()
    weight = torch.from_numpy(RNG.random(60))
    for whole in (problem(sizes, copies), problem(sizes, copies, weight=weight)):
        parts = parts_of(whole, rows)
        assert [where.start for where, _ in parts[1:]] == [where.stop for where, _ in parts[:-1]]
        assert parts[0][0].start == 0
        assert parts[-1][0].stop == len(whole.instances)
        assert (len(parts) > 1) == (rows < len(whole.instances))
        logits = torch.from_numpy(RNG.normal(size=len(whole.instances)))
        losses, slope = whole.losses_and_slope(logits)
        found = [part.losses_and_slope(logits[where]) for where, part in parts]
        torch.testing.assert_close(torch.cat([each for each, _ in found]), losses)
        torch.testing.assert_close(torch.cat([each for _, each in found]), slope)
        torch.testing.assert_close(torch.cat([part.row_weights for _, part in parts]), whole.row_weights)
        torch.testing.assert_close(mean_loss(parts, whole, logits), whole.mean_loss(logits))


@pytest.mark.parametrize("objective", [BagObjective(), ProportionObjective()])
def test_losses_of_single_bags_are_cut(objective: object) -> None:
    labels = torch.from_numpy(RNG.integers(0, 2, 30))
    whole = problem([4] * 30, objective=objective, labels=labels)
    logits = torch.from_numpy(RNG.normal(size=120))
    parts = parts_of(whole, 20)
    assert len(parts) == 6
    torch.testing.assert_close(mean_loss(parts, whole, logits), whole.mean_loss(logits))


def test_what_cannot_be_cut_is_one_part() -> None:
    assert len(parts_of(problem([4] * 30, objective=ContaminationObjective()), 20)) == 1  # compares bags
    mixed = problem([4] * 30)
    for index in (torch.arange(120).flip(0), torch.arange(120).clamp(max=60), torch.arange(120) // 8 * 8):
        whole = problem([4] * 30)
        object.__setattr__(whole, "bags", kofn.Bags(index, mixed.bags.offsets))
        assert len(parts_of(whole, 20)) == 1  # scattered bags; bags that share rows


def test_the_gradient_of_several_classes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = torch.from_numpy(RNG.multinomial(5, [0.2, 0.3, 0.5], 40))
    whole = Problem(
        instances=np.zeros((200, 1), np.float32),
        bags=kofn.Bags.from_sizes([5] * 40),
        labels=counts,
        objective=CountObjective(kofn.ClassCounts),
        rate=torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64),
        proportions=counts / 5,
    )
    scores = np.asfortranarray(RNG.normal(size=(200, 3)))
    losses: list[float] = []
    expected = [each.copy() for each in boosting_gradient(whole, losses)(scores, None)]
    monkeypatch.setattr("kofn.learners._problem_parts.parts_of.__defaults__", (30,))
    found = boosting_gradient(whole, losses)(scores, None)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert losses[0] == pytest.approx(losses[1])


def test_bins_of_a_mapped_matrix_are_those_of_one_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "IN_MEMORY", 0)
    X = RNG.normal(size=(3000, 4)).astype(np.float32)
    X[:, 3] = RNG.integers(0, 5, 3000)
    X[RNG.random(X.shape) < 0.1] = np.nan
    matrix_on_disk = mapped.new_array(X.shape, folder=tmp_path)
    matrix_on_disk[:] = X
    params = {"verbose": -1, "deterministic": True, "num_threads": 1, "bin_construct_sample_cnt": 1000}
    y = (np.nan_to_num(X[:, 0]) > 0).astype(np.float64)
    texts = []
    for matrix in (X, matrix_on_disk):
        data = binned(matrix, categories=[3], params=params).set_label(y)
        booster = lightgbm.Booster(params, data)
        for _ in range(5):
            booster.update()
        texts.append(booster.model_to_string().split("parameters:")[0])
    assert texts[0] == texts[1]
