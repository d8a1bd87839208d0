"""The fuzz of `make fuzz`: its oracle is right, its figures do not depend on how it is run, and it can fail."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from bag_strategies import adversarial_count, adversarial_logits
from oracles import long_gradient, long_tables, mpmath_gradient, mpmath_law
from torch import Tensor

import kofn
from bench.fuzz import special_bags
from bench.fuzz.__main__ import main, run
from bench.fuzz.awkward_bags import DTYPES, LAYOUTS, batches
from bench.fuzz.checks import BOUNDS, check_chunk, distance
from bench.fuzz.wide_oracle import truths

INF = math.inf
SPECIAL = {quantity.split(", ")[0] for quantity in special_bags.BOUNDS}
pytestmark = pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="needs floats of 80 bits")


def test_the_oracle_agrees_with_fifty_digits_and_with_tables_in_log_space() -> None:
    rng = np.random.default_rng(3)
    bags = [adversarial_logits(rng, n) for n in (0, 1, 2, 9, 9, 40, 40, 40)] + [rng.normal(2e4, 1, 60)]
    counts = np.array([adversarial_count(rng, bag) for bag in bags[:-1]] + [30])
    high = counts + np.arange(len(bags)) % 4
    for bag, count, last, truth in zip(bags, counts, high, truths(bags, counts, counts, high), strict=True):
        law = mpmath_law(bag.tolist())
        with mpmath.workdps(50):
            expected = np.array([float(mpmath.log(p)) for p in law])
            between = float(mpmath.log(mpmath.fsum(law[count : last + 1])))
        np.testing.assert_allclose(truth.log_law.astype(float), expected, rtol=1e-15, atol=1e-15)
        np.testing.assert_allclose(truth.log_prob[0].astype(float), expected[count], rtol=1e-15, atol=1e-15)
        np.testing.assert_allclose(truth.log_between[0].astype(float), between, rtol=1e-15, atol=1e-15)
        gradient = np.array(mpmath_gradient(bag.tolist(), int(count)))
        np.testing.assert_allclose(truth.gradient.astype(float), gradient, rtol=0, atol=2e-16)
        np.testing.assert_allclose(truth.posteriors.sum(), float(count), rtol=1e-15, atol=1e-15)
        # The gradient of an interval is the mean of those of its counts, each as likely as it is within the interval.
        tables = long_tables(bag)
        inside = range(count, min(last, len(bag)) + 1)
        slopes = [math.exp(expected[k] - between) * long_gradient(bag, k, tables) for k in inside]
        np.testing.assert_allclose(truth.between_gradient.astype(float), sum(slopes), rtol=0, atol=2e-13)


def test_the_oracle_knows_what_is_certain_and_what_cannot_be() -> None:
    bag = np.array([INF, 0.0, -INF])
    counts, low, high = np.array([0, 1, 4]), np.array([2, 2, 3]), np.array([1, 9, 3])
    below, possible, above = truths([bag] * 3, counts, low, high)
    assert [float(truth.log_prob[0]) for truth in (below, above)] == [-INF, -INF]
    assert [float(truth.log_between[0]) for truth in (below, above)] == [-INF, -INF]
    for truth in (below, above):
        assert truth.gradient.tolist() == truth.between_gradient.tolist() == [0, 0, 0]
        assert truth.posteriors.tolist() == [1, 0.5, 0]
    assert possible.posteriors.tolist() == [1, 0, 0]
    assert possible.between_gradient.tolist() == [0, 0.5, 0]
    assert np.exp(possible.log_law).tolist() == pytest.approx([0, 0.5, 0.5, 0], abs=1e-18)


@pytest.mark.slow
def test_a_small_fuzz_passes_and_leaves_its_figures(tmp_path: Path) -> None:
    assert main(["--bags", "300", "--seed", "1", "--jobs", "1", "--out", str(tmp_path / "fuzz")]) == 0
    record = json.loads((tmp_path / "fuzz.json").read_text())
    assert record["facts"]["bags"] == 300
    assert record["facts"]["impossible counts"] > 10
    assert record["wrong answers"] == 0
    assert {key.split(", ")[0] for key in record["worst"]} == set(BOUNDS) | SPECIAL
    assert "| `log_count_distribution` | 1e-11 |" in (tmp_path / "fuzz.md").read_text()


@pytest.mark.slow
def test_a_seed_gives_the_same_bags_in_any_number_of_processes() -> None:
    one, two = (list(run(range(2), bags=510, seed=9, jobs=jobs)) for jobs in (1, 2))
    assert one == two
    assert [tally.facts["bags"] for tally in one] == [500, 10]
    first, other = batches(9, 0, 5)[0], batches(10, 0, 5)[0]
    assert not np.array_equal(np.concatenate(first.bags), np.concatenate(other.bags))


def test_every_layout_and_dtype_is_drawn_and_batches_are_mixed() -> None:
    drawn = [batch for chunk in range(4) for batch in batches(0, chunk, 500)]
    assert {batch.layout for batch in drawn} == set(LAYOUTS)
    assert {batch.dtype for batch in drawn} == set(DTYPES)
    assert max(len(bag) for batch in drawn for bag in batch.bags) > 350
    assert min(len(bag) for batch in drawn for bag in batch.bags) == 0
    assert any(batch.logits().isnan().any() for batch in drawn)  # only ever where a mask says that there is nothing
    assert not any(np.isnan(bag).any() for batch in drawn for bag in batch.bags)


def test_a_wrong_engine_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = kofn.log_count_prob

    def off(logits: Tensor, counts: Tensor, **where: Tensor) -> Tensor:
        value = right(logits, counts, **where)
        return value * (1 + 1e-9) if kofn.counts.backend() == "torch" else value

    monkeypatch.setattr(kofn, "log_count_prob", off)
    assert main(["--bags", "60", "--jobs", "1", "--out", str(tmp_path / "fuzz")]) == 1
    said = capsys.readouterr().out
    assert "wrong: seed 0, chunk 0, batch " in said
    assert "engine torch, quantity log_prob" in said
    assert "engine native" not in said
    assert json.loads((tmp_path / "fuzz.json").read_text())["wrong answers"] > 0


@pytest.mark.slow
def test_a_wrong_answer_about_an_extreme_bag_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = kofn.log_class_count_prob
    monkeypatch.setattr(kofn, "log_class_count_prob", lambda *args, **options: right(*args, **options) * (1 + 1e-9))
    assert {failure.quantity for failure in check_chunk(0, bags=20, seed=0).failures} == {"classes, log_prob"}


@pytest.mark.parametrize("leak", ["count_posteriors", "log_count_distribution"])
def test_what_stands_under_a_mask_is_checked_too(leak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = next(c for c in range(99) if any(b.layout == "masked" for b in batches(0, c, 30)))
    right = getattr(kofn, leak)

    def leaking(*args: Tensor, **where: Tensor) -> Tensor:
        answer: Tensor = right(*args, **where)
        if "mask" not in where:
            return answer
        nothing = ~where["mask"]
        if leak == "log_count_distribution":
            nothing = torch.arange(answer.shape[-1]) > where["mask"].sum(-1, keepdim=True)
        return answer.masked_fill(nothing, 0.3)

    assert not check_chunk(chunk, bags=chunk * 500 + 30, seed=0).failures
    monkeypatch.setattr(kofn, leak, leaking)
    failures = check_chunk(chunk, bags=chunk * 500 + 30, seed=0).failures
    assert {failure.layout for failure in failures} == {"masked"}


def test_errors_in_each_dtype() -> None:
    def error(found: float, expected: float, dtype: str) -> float:
        return float(distance(np.array([found]), np.array([expected]), dtype, relative=True)[0])

    assert error(-3.0, -2.0, "float64") == 0.5
    assert error(-INF, -INF, "float64") == 0
    assert error(-INF, -2.0, "float64") == error(-2.0, -INF, "float64") == error(math.nan, -2.0, "float64") == INF
    assert error(-INF, -70000.0, "float16") == 0  # more than float16 holds
    assert error(-INF, -70000.0, "bfloat16") == error(INF, -70000.0, "float16") == INF
    assert error(-1024.0, -1025.0, "float16") == 0  # neighbours
    assert error(-1024.0, -1027.0, "float16") > 1e-3
    assert error(-1024.0, -1024.5, "float32") > 1e-4
