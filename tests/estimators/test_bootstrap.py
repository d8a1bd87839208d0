"""Fits to resampled bags: their mean, the mixture of their counts, their intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from estimator_cases import LEARNERS, UNLEARNT, bags_task, pu_task, short_network
from scipy.special import expit
from scipy.stats import t as student_t

import kofn
from kofn.bags import Bags
from kofn.counts import CountDistribution
from kofn.estimators import FitWarning
from kofn.estimators._count_mixture import CountMixture
from kofn.estimators._ensemble import mean_intervals
from kofn.learners import PUObjective, PUProblem
from kofn.learners._network import FittedNetwork
from kofn.learners._resamples import resample

pytestmark = UNLEARNT
TASK = bags_task(bags=40)
CLASSES = np.digitize(TASK.X[:, 0], [-0.5, 0.5])
CLASS_COUNTS = np.eye(3)[CLASSES].reshape(40, 4, 3).sum(1)[TASK.groups]


def llp(learner: Any = None, **options: Any) -> Any:
    options = {"bootstrap": 4, "random_state": 0} | options
    model = kofn.LLPClassifier(learner or kofn.Linear(l2=0.01), **options)
    return model.fit(TASK.X, TASK.y, groups=TASK.groups)


def of_classes(learner: Any = None) -> Any:
    model = kofn.LLPClassifier(learner or kofn.Linear(l2=0.01), label="count", bootstrap=4, random_state=0)
    return model.fit(TASK.X, CLASS_COUNTS, groups=TASK.groups)


@pytest.mark.parametrize("name", LEARNERS)
def test_probabilities_are_the_mean_of_the_members(name: str) -> None:
    model = llp(LEARNERS[name]())
    each = np.stack([expit(member.logits(model._instances(TASK.X))) for member in model.members_])
    assert len(each) == 4
    assert np.ptp(each, axis=0).max() > 1e-3  # they are four different models
    np.testing.assert_allclose(model.predict_proba(TASK.X)[:, 1], each.mean(0), rtol=1e-12)
    np.testing.assert_allclose(expit(model.decision_function(TASK.X)), each.mean(0), rtol=1e-12)
    assert (model.predict(TASK.X) == (each.mean(0) > 0.5)).all()


@pytest.mark.parametrize("name", LEARNERS)
def test_the_fit_to_all_bags_is_as_without(name: str) -> None:
    model, plain = llp(LEARNERS[name]()), llp(LEARNERS[name](), bootstrap=0)
    assert (model.fitted_.logits(model._instances(TASK.X)) == plain.decision_function(TASK.X)).all()
    assert model.history_ == plain.history_
    assert model.validation_loss_ == plain.validation_loss_
    assert plain.members_ == []


def again_problem() -> Any:
    return kofn.LLPClassifier()._problem(TASK.X, TASK.y, TASK.groups)[0]


@pytest.mark.parametrize("name", LEARNERS)
def test_members_choose_nothing(name: str) -> None:
    learner = LEARNERS[name]()
    model = llp(learner, bootstrap=0)
    settled = learner.settled(model.fitted_, again_problem())
    again = kofn.LLPClassifier(settled, random_state=0).fit(TASK.X, TASK.y, groups=TASK.groups)
    assert len(again.held_out_) == 0
    assert len(again.history_) == (1 if name == "linear" else model.best_step_)


def test_penalties_of_members() -> None:
    problem = again_problem()  # 40 bags, three coefficients
    learner = kofn.Linear(penalties=(1.0, 0.5))
    assert learner.settled(learner.fit(problem, seed=0), problem).l2 == pytest.approx(1 / (2.5**2 * 40))  # wide prior
    weak = kofn.Linear(penalties=(1e-5, 1e-6))
    assert weak.settled(weak.fit(problem, seed=0), problem).l2 in (1e-5, 1e-6)  # as chosen
    few = problem.take(torch.arange(12))
    found = learner.fit(few, seed=0)
    assert found.best is not None
    assert learner.settled(found, few).l2 == pytest.approx(found.history[found.best]["l2"] / 10)
    given = kofn.Linear(l2=0.5)
    assert given.settled(given.fit(problem, seed=0), problem).l2 == 0.5


def test_members_leave_checkpoints_and_callbacks_alone(tmp_path: Any) -> None:
    seen: list[float] = []
    network = kofn.Network(
        hidden=(), epochs=3, checkpoint=tmp_path / "checkpoint", callback=lambda _, entry: seen.append(entry["epoch"])
    )
    llp(network)
    assert seen == [1, 2, 3]


def test_seeds() -> None:
    first, again, other = (llp(random_state=seed).predict_proba(TASK.X) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_models_do_not_depend_on_the_number_of_processes(name: str) -> None:
    one, two = (llp(LEARNERS[name](), n_jobs=jobs).decision_function(TASK.X) for jobs in (1, 2))
    assert (one == two).all()


def test_progress_tells_of_each_fit() -> None:
    told: list[tuple[str, int, int]] = []
    llp(progress=lambda what, step, of, _: told.append((what, step, of)))
    assert [each for each in told if each[0] == "bootstrap"] == [("bootstrap", step, 4) for step in (1, 2, 3, 4)]


def test_resamples_of_bags_and_of_rows() -> None:
    problem, _ = kofn.LLPClassifier()._problem(TASK.X, TASK.y, TASK.groups)
    units = resample(problem, 0, 0)
    assert len(units) == 40 > len(units.unique()) > 15
    rows, _, labels = pu_task(rows=100)
    dealt, *_ = kofn.PUClassifier(mixture=0.3)._problem(rows, labels, 0)
    drawn = dealt.labeled[resample(dealt, 0, 0)]
    assert int(drawn.sum()) == (labels == 1).sum()  # as many labelled as there are


# Counts of bags


def test_counts_of_bags_are_the_mixture() -> None:
    model = llp()
    groups = np.repeat(np.arange(4), 40)
    each = []
    for member in model.members_:
        single = llp(bootstrap=0)
        single.fitted_ = member
        each.append(single.predict_bag_proba(TASK.X, groups))
    table = np.mean(each, axis=0)
    np.testing.assert_allclose(model.predict_bag_proba(TASK.X, groups), table, atol=1e-13)
    assert (model.predict_bags(TASK.X, groups) == table.argmax(1)).all()
    # One distribution of the mean probabilities is another one, and narrower.
    mean = torch.from_numpy(model.decision_function(TASK.X))
    alone = CountDistribution(mean, offsets=torch.arange(5) * 40)
    spread = ((np.arange(41) - (table * np.arange(41)).sum(1, keepdims=True)) ** 2 * table).sum(1)
    assert spread.sum() > alone.variance.sum().item()


def mixture(seed: int, sizes: list[int]) -> tuple[CountMixture, list[Any]]:
    """A mixture of five, and by bag the probabilities of its counts."""
    generator = torch.Generator().manual_seed(seed)
    bags = Bags.from_sizes(sizes)
    logits = torch.randn(5, len(bags.index), generator=generator, dtype=torch.float64)
    logits = logits + 2 * torch.randn(5, 1, generator=generator, dtype=torch.float64)
    members = [CountDistribution(each, offsets=bags.offsets) for each in logits]
    counts = [torch.stack([CountDistribution(each[bag]).log_probs() for each in logits]) for bag in bags]
    return CountMixture(members), [each.exp().mean(0) for each in counts]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.999])
def test_a_mixture_against_its_table(seed: int, level: float) -> None:
    mixed, tables = mixture(seed, [1, 7, 30, 2])
    low, high = mixed.interval(level)
    tail = (1 - level) / 2
    for bag, table in enumerate(tables):
        counts = torch.arange(len(table))
        assert torch.isclose(mixed.mean[bag], (counts * table).sum())
        assert mixed.mode[bag] == table.argmax()
        k = len(table) // 2
        assert torch.isclose(mixed.log_prob(k)[bag].exp(), table[k])
        assert torch.isclose(mixed.cdf(k)[bag], table[: k + 1].sum())
        below = torch.cat([torch.zeros(1), table.cumsum(0)])[:-1]
        above = table.flip(0).cumsum(0).flip(0) - table
        assert low[bag] == counts[below <= tail].max()
        assert high[bag] == counts[above <= tail].min()


def test_score_and_posteriors_are_of_the_mixture() -> None:
    model = llp()
    singles = []
    for member in model.members_:
        single = llp(bootstrap=0)
        single.fitted_ = member
        singles.append(single)
    bag = TASK.groups < 1
    x, y, groups = TASK.X[bag], TASK.y[bag], TASK.groups[bag]
    likelihoods = np.exp([single.score(x, y, groups) for single in singles])
    assert np.isclose(model.score(x, y, groups), np.log(likelihoods.mean()))
    each = np.stack([single.posterior_proba(x, y, groups) for single in singles])
    wanted = np.average(each, axis=0, weights=likelihoods)
    np.testing.assert_allclose(model.posterior_proba(x, y, groups), wanted, atol=1e-12)
    assert np.isclose(model.posterior_proba(x, y, groups)[:, 1].sum(), TASK.counts[0])


def test_several_classes() -> None:
    model = of_classes()
    each = torch.stack([torch.from_numpy(member.logits(model._instances(TASK.X))) for member in model.members_])
    np.testing.assert_allclose(model.predict_proba(TASK.X), each.softmax(2).mean(0), rtol=1e-10)
    table = model.predict_bag_proba(TASK.X, TASK.groups)
    assert table.shape == (40, 3, 5)
    np.testing.assert_allclose(table.sum(2), 1)
    np.testing.assert_allclose(
        (table * np.arange(5)).sum(2), Bags.from_ids(TASK.groups).sum(model.predict_proba(TASK.X))
    )
    posterior = model.posterior_proba(TASK.X, CLASS_COUNTS, TASK.groups)
    np.testing.assert_allclose(Bags.from_ids(TASK.groups).sum(posterior), CLASS_COUNTS[::4], atol=1e-9)
    low, high = model.predict_interval(TASK.X)
    assert low.shape == (160, 3)
    assert ((low <= model.predict_proba(TASK.X)) & (model.predict_proba(TASK.X) <= high)).all()
    low, high = model.predict_interval(TASK.X, groups=TASK.groups)
    assert low.shape == (40, 3)
    assert (low < high).all()


def test_multiple_instances() -> None:
    model = kofn.MILClassifier(kofn.Linear(l2=0.01), bootstrap=4, random_state=0)
    model.fit(TASK.X, TASK.any, groups=TASK.groups)
    singles = []
    for member in model.members_:
        single = kofn.MILClassifier(kofn.Linear(l2=0.01), random_state=0).fit(TASK.X, TASK.any, groups=TASK.groups)
        single.fitted_ = member
        singles.append(single)
    each = np.stack([single.predict_bag_proba(TASK.X, TASK.groups) for single in singles])
    np.testing.assert_allclose(model.predict_bag_proba(TASK.X, TASK.groups), each.mean(0), rtol=1e-9)
    posterior = model.posterior_proba(TASK.X, TASK.any, TASK.groups)[:, 1]
    assert (posterior[TASK.any == 0] == 0).all()
    assert (Bags.from_ids(TASK.groups).sum(posterior)[TASK.any[::4] == 1] >= 1 - 1e-12).all()


@pytest.mark.filterwarnings("ignore:.*lower bound of the doubt")
def test_attention_images_and_pu() -> None:
    attention = kofn.MILClassifier(short_network(hidden=(4,)), loss="attention", bootstrap=3, random_state=0)
    attention.fit(TASK.X, TASK.any, groups=TASK.groups)
    bags = Bags.from_ids(TASK.groups)
    members = [cast(FittedNetwork, member) for member in attention.members_]
    each = np.stack([member.bag_logits(TASK.X.astype(np.float32), bags) for member in members])
    np.testing.assert_allclose(attention.predict_bag_proba(TASK.X, TASK.groups)[:, 1], expit(each).mean(0), rtol=1e-6)
    images = np.random.default_rng(0).normal(size=(160, 1, 3, 3)).astype(np.float32)

    def small(channels: int) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Conv2d(channels, 2, 3), torch.nn.Flatten(), kofn.learners.Logit(2))

    model = kofn.LLPClassifier(short_network(small), bootstrap=2, random_state=0)
    with pytest.warns(FitWarning, match="a lower bound of the doubt"):
        low, high = model.fit(images, TASK.y, groups=TASK.groups).predict_interval(images)
    assert (low < high).all()
    rows, _, labels = pu_task(rows=200)
    for learner in (short_network(), kofn.Trees(rounds=5), kofn.Linear(l2=0.01)):
        low, high = (
            kofn.PUClassifier(learner, prior=0.5, bootstrap=3, random_state=0).fit(rows, labels).predict_interval(rows)
        )
        assert (low < high).any()


# Intervals


def test_an_interval_is_its_formula() -> None:
    model = llp(bootstrap=5)
    z = np.stack([member.logits(model._instances(TASK.X)) for member in model.members_])
    half = student_t.ppf(0.9, 4) * z.std(0, ddof=1)
    centre = model.decision_function(TASK.X)
    low, high = model.predict_interval(TASK.X, 0.8)
    np.testing.assert_allclose(low, expit(centre - half), rtol=1e-9)
    np.testing.assert_allclose(high, expit(centre + half), rtol=1e-9)
    wide = model.predict_interval(TASK.X, 0.95)
    assert (wide[0] < low).all()
    assert (high < wide[1]).all()


def test_intervals_of_groups() -> None:
    model = llp()
    rows = model.predict_interval(TASK.X)
    alone = model.predict_interval(TASK.X, groups=np.arange(160))
    np.testing.assert_allclose(rows, alone, rtol=1e-9)  # of a group of one its probability
    counts, means = (model.predict_interval(TASK.X, groups=TASK.groups, mean=mean) for mean in (False, True))
    np.testing.assert_allclose(counts, np.multiply(means, 4), rtol=1e-12)
    expected = Bags.from_ids(TASK.groups).sum(model.predict_proba(TASK.X)[:, 1]).numpy()
    assert ((counts[0] < expected) & (expected < counts[1])).all()
    twice = model.predict_interval(TASK.X, groups=TASK.groups, copies=np.full(160, 2))
    np.testing.assert_allclose(twice, np.multiply(counts, 2), rtol=1e-12)


def test_extreme_logits_have_intervals() -> None:
    bags = Bags.from_sizes([2, 1])
    for sign in (1, -1):
        logits = sign * torch.tensor([[2000.0, 1990.0, 3.0], [2010.0, 1980.0, 2.0]], dtype=torch.float64)
        low, high = mean_intervals(logits, bags, 0.9)
        assert (low[0], high[0]) == ((1, 1) if sign == 1 else (0, 0))
        assert 0 < low[1] < high[1] < 1


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"`bootstrap` must be a number of fits, such as 50"):
        llp(bootstrap=0).predict_interval(TASK.X)
    with pytest.raises(ValueError, match=r"`level` must be a probability above 0 and below 1; got 90"):
        llp().predict_interval(TASK.X, 90)
    with pytest.raises(ValueError, match=r"`bootstrap` must be 0 or at least 2: one fit has no spread"):
        llp(bootstrap=1)
    with pytest.raises(ValueError, match="bootstrap"):
        llp(bootstrap=-1)
    with pytest.raises(TypeError, match="bootstrap"):
        llp(bootstrap=2.5)


def test_what_belongs_together_is_drawn_together() -> None:
    problem = replace(again_problem(), together=torch.arange(40) // 4)
    drawn = resample(problem, 0, 0)
    _, times = drawn.unique(return_counts=True)
    by_group = torch.zeros(40, dtype=torch.int64).index_put((drawn.unique(),), times).view(10, 4)
    assert (by_group == by_group[:, :1]).all()
    assert by_group[:, 0].sum() == 10
    labelled = PUProblem.of(torch.arange(8) < 2, size=4, seed=0, instances=np.zeros((8, 1), np.float32),
                            objective=PUObjective(0.5), rate=0.5, together=torch.arange(8) // 2)  # fmt: skip
    for place in range(20):  # the labelled rows are one user's, of four
        assert set(labelled.strata[resample(labelled, 0, place)].tolist()) == {0, 1}
