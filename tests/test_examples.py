"""What each example claims, at a small size and with a wide margin."""

from __future__ import annotations

from pathlib import Path

import _picture
import count_regulariser
import large_bag
import llp_dataframe
import mil_images
import noisy_counts
import pu_unknown_prior
import pytest
import several_classes
import torch

import kofn
from kofn.datasets import load_digits_task

pytestmark = pytest.mark.slow  # they train models

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.filterwarnings("ignore:the distributions of counts are too narrow")
def test_counts_teach_nearly_what_votes_do_and_soft_labels_do_not() -> None:
    table = llp_dataframe.measure(0)
    loss = table["log loss"]
    assert table.loc["the count", "AUC"] > table.loc["every vote", "AUC"] - 0.05
    assert loss["the count"] < loss["a soft label"] - 0.03
    assert loss["the count, then the result"] < loss["the count"] - 0.02


def test_published_share_is_the_mean_of_the_votes() -> None:
    frame = llp_dataframe.voters(5, 0)
    assert (frame.groupby("county")["vote"].mean() == frame.groupby("county")["share"].first()).all()
    assert frame.groupby("county").size().between(10, 40).all()


def test_nines_are_found_from_labels_of_bags() -> None:
    data = load_digits_task("mil", seed=0)
    bag_auc, digit_auc, error = mil_images.measure(data, mil_images.fit(data, "count", 0))
    assert bag_auc > 0.85
    assert digit_auc > 0.9
    assert error < 1


def test_bound_is_the_mixture_when_some_scores_are_pure_and_above_it_when_none_are() -> None:
    generator = torch.Generator().manual_seed(0)
    positive, _ = pu_unknown_prior.draw_rows(50_000, 1.0, generator)
    unlabelled, _ = pu_unknown_prior.draw_rows(50_000, 0.6, generator)
    assert pu_unknown_prior.bound(positive[:, 0], unlabelled[:, 0]) == pytest.approx(0.6, abs=0.02)
    assert pu_unknown_prior.bound(positive[:, 1], unlabelled[:, 1]) > 0.9  # this feature says nothing


def test_wrong_guesses_are_taken_over_and_the_loss_does_not_object() -> None:
    low, high = (pu_unknown_prior.measure(guess, 0, steps=100) for guess in (0.2, 0.9))
    assert low[1] < 0.45  # share called positive; 0.6 are, and the labelled ones hold against the guess
    assert high[1] > 0.9
    assert high[3] < low[3]  # held-out loss


def test_noise_is_better_modelled_than_ignored() -> None:
    runs = [noisy_counts.measure(2.0, seed) for seed in range(2)]
    for run in runs:
        assert run["exact"][2] < run["plug-in"][2]
        assert run["noisy"][2] < run["plug-in"][2]


def test_a_census_closes_the_gap_and_a_wrong_one_does_not() -> None:
    results = count_regulariser.measure(0, steps=80)
    gaps = {name: abs(values[2]) for name, values in results.items()}
    assert gaps["no statement"] > 0.15
    assert gaps["a wrong census"] > 0.15
    for name in ("Exactly", "Between", "Distributed", "squared rate"):
        assert gaps[name] < 0.1, name


def test_exact_counts_of_digits_teach_more_than_their_means() -> None:
    found = {loss: several_classes.measure(128, loss, 0) for loss in ("joint", "marginal", "proportion")}
    assert found["marginal"] > found["proportion"] + 0.03
    assert found["joint"] > found["proportion"] + 0.03
    assert several_classes.measure(8, "joint", 0) > several_classes.measure(1, "joint", 0) - 0.03


def test_algorithm_1_of_the_example_is_the_distribution_of_the_count() -> None:
    logits = torch.randn(60, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    slow, fast = large_bag.algorithm_1(logits, 21), kofn.log_count_prob(logits, 21)
    torch.testing.assert_close(slow, fast)
    torch.testing.assert_close(torch.autograd.grad(slow, logits), torch.autograd.grad(fast, logits))


def test_a_dozen_counts_teach_four_weights() -> None:
    torch.testing.assert_close(large_bag.learn(size=5000), large_bag.TRUE, atol=0.2, rtol=0)


def test_pictures_are_the_same_file_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["example", str(tmp_path / "new" / "folder")])
    files = []
    for _ in range(2):
        figure, axes = _picture.plt.subplots()
        axes.plot([0, 1], [1, 0])
        files.append(_picture.save(figure, "line").read_bytes())
        _picture.plt.close(figure)
    assert files[0] == files[1]
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["line.svg"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_page_of_examples_has_each(path: Path) -> None:
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text()
    assert f'--8<-- "examples/{path.name}"' in page
