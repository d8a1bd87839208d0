"""Plans of epochs: every bag once, the same for the same seed, shared out so that gradients add up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kofn import Bags
from kofn.learners import BagDataset, BagSampler, Draw, StepSampler
from kofn.losses import llp_loss

SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=30)
MODE = st.one_of(
    st.builds(lambda n: {"bags": n}, st.integers(1, 12)), st.builds(lambda n: {"instances": n}, st.integers(1, 30))
)
PLAN = st.fixed_dictionaries(
    {
        "processes": st.integers(1, 4),
        "accumulate": st.integers(1, 3),
        "shuffle": st.booleans(),
        "seed": st.integers(0, 2**63),
    }
)


def steps(make: Callable[[int], StepSampler], epoch: int = 0) -> list[list[Draw]]:
    """The draws of all processes, step by step."""
    samplers = [make(0)]
    samplers += [make(process) for process in range(1, samplers[0].processes)]
    draws = []
    for sampler in samplers:
        sampler.set_epoch(epoch)
        draws.append(list(sampler))
        assert len(draws[-1]) == len(sampler) == len(draws[0])  # processes that wait for one another do so for ever
    accumulate = samplers[0].accumulate
    assert len(draws[0]) % accumulate == 0
    return [
        [draw for own in draws for draw in own[start : start + accumulate]]
        for start in range(0, len(draws[0]), accumulate)
    ]


def items(draws: list[Draw]) -> list[list[int]]:
    return [draw.items.tolist() for draw in draws]


@given(sizes=SIZES, mode=MODE, plan=PLAN, epoch=st.integers(0, 1000))
def test_each_bag_once_in_shares_that_add_up(sizes: list[int], mode: dict[str, int], plan: Any, epoch: int) -> None:
    seen: list[int] = []
    for step in steps(lambda p: BagSampler(torch.tensor(sizes), process=p, **mode, **plan), epoch):
        real = [draw for draw in step if draw.share]
        bags = [bag for draw in real for bag in draw.items.tolist()]
        seen += bags
        assert len(step) == plan["processes"] * plan["accumulate"]
        assert sum(draw.share for draw in step) == pytest.approx(1.0, abs=1e-12)
        assert all(draw.share == len(draw.items) / len(bags) for draw in real)
        assert all(len(draw.items) and set(draw.items.tolist()) <= set(bags) for draw in step)  # never an empty batch
        if "bags" in mode:
            assert len(bags) <= mode["bags"]
            assert max(len(draw.items) for draw in real) - min(len(draw.items) for draw in real) <= 1
        else:
            assert all(sum(sizes[b] for b in own) <= mode["instances"] or len(own) == 1 for own in items(real))
    assert sorted(seen) == list(range(len(sizes)))
    if not plan["shuffle"] and plan["accumulate"] == 1:
        assert seen == list(range(len(sizes)))


def test_plan_is_seed_and_epoch() -> None:
    def plan(seed: int, epoch: int, **mode: int) -> list[list[int]]:
        sampler = BagSampler(torch.full((40,), 3), seed=seed, **(mode or {"bags": 7}))
        sampler.set_epoch(epoch)
        return items(list(sampler))

    state = torch.get_rng_state()
    plans = {(seed, epoch): plan(seed, epoch) for seed in range(3) for epoch in range(3)}
    assert len({str(one) for one in plans.values()}) == 9  # seed 1, epoch 0 is not seed 0, epoch 1
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    assert plan(1, 2) == plans[1, 2]
    assert plan(1, 2, instances=12) == plan(1, 2, instances=12) != plan(1, 3, instances=12)
    torch.set_rng_state(state)


def test_processes_share_one_plan_whatever_their_number() -> None:
    def bags_of_steps(processes: int, accumulate: int) -> list[set[int]]:
        made = steps(
            lambda p: BagSampler(
                torch.ones(23, dtype=torch.int64), bags=6, processes=processes, process=p, accumulate=accumulate
            )
        )
        return [{bag for draw in step for bag in draw.items.tolist()} for step in made]

    assert bags_of_steps(1, 1) == bags_of_steps(3, 1) == bags_of_steps(1, 4) == bags_of_steps(2, 5)


def test_without_shuffle_epochs_are_equal() -> None:
    sampler = BagSampler(torch.tensor([3, 1, 2, 5]), instances=6, shuffle=False)
    assert items(list(sampler)) == [[0, 1, 2], [3]]
    sampler.set_epoch(7)
    assert items(list(sampler)) == [[0, 1, 2], [3]]


def test_epoch_is_read_when_the_first_batch_is_asked_for() -> None:
    sampler = BagSampler(torch.ones(30, dtype=torch.int64), bags=4, seed=1)
    plans = []
    for epoch in (0, 3):
        sampler.set_epoch(epoch)
        plans.append(items(list(sampler)))
    assert plans[0] != plans[1]
    sampler.set_epoch(0)
    late = iter(sampler)
    sampler.set_epoch(3)
    first = next(late)
    sampler.set_epoch(0)  # too late for an epoch that has begun
    assert items([first, *late]) == plans[1]
    assert sampler.sampler is sampler  # where Lightning looks for set_epoch


@settings(max_examples=30)
@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=12), mode=MODE, plan=PLAN)
def test_gradients_of_parts_add_up_to_the_step(sizes: list[int], mode: dict[str, int], plan: Any) -> None:
    generator = torch.Generator().manual_seed(sum(sizes))
    bags = Bags.from_sizes(sizes)
    instances = torch.randn(sum(sizes), 3, dtype=torch.float64, generator=generator)
    data = BagDataset(instances, bags, (torch.rand(len(sizes), generator=generator) * (bags.sizes + 1)).long())
    weight = torch.randn(3, dtype=torch.float64, generator=generator, requires_grad=True)

    def mean_loss(draw: Draw | list[int]) -> torch.Tensor:
        batch = data.__getitems__(draw)
        losses = llp_loss(batch.instances @ weight, batch.labels, offsets=batch.offsets, reduction="none")
        return losses.mean() * batch.share

    for step in steps(lambda p: BagSampler(bags.sizes, process=p, **mode, **plan)):
        whole = mean_loss([bag for draw in step if draw.share for bag in draw.items.tolist()])
        parts = torch.stack([mean_loss(draw) for draw in step]).sum()
        torch.testing.assert_close(parts, whole)
        torch.testing.assert_close(torch.autograd.grad(parts, weight), torch.autograd.grad(whole, weight))


ONES = torch.ones(4, dtype=torch.int64)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: BagSampler(ONES), ValueError, "either `bags` or `instances` must be given, not both; got None and None."),
    (lambda: BagSampler(ONES, bags=2, instances=3), ValueError, "either `bags` or `instances` .* got 2 and 3."),
    (lambda: BagSampler(ONES, bags=0), ValueError, "`bags` must be at least 1; got 0."),
    (lambda: BagSampler(ONES, instances=2.5), TypeError, "`instances` must be an integer; got 2.5."),  # type: ignore[arg-type]  # on purpose
    (lambda: BagSampler(ONES, bags=True), TypeError, "`bags` must be an integer; got True."),
    (lambda: BagSampler(ONES[:0], bags=1), ValueError, "`sizes` must be those of one bag or more; got none."),
    (lambda: BagSampler(ONES * 0, bags=1), ValueError, "`sizes` must be at least 1; got 0."),
    (lambda: BagSampler(-ONES, bags=1), ValueError, "`sizes` must be at least 1; got -1."),
    (lambda: BagSampler(ONES / 2, bags=1), TypeError, "`sizes` must be integers; got torch.float32"),
    (lambda: BagSampler(ONES, bags=1, seed=-1), ValueError, "`seed` must be at least 0; got -1."),
    (lambda: BagSampler(ONES, bags=1, processes=0), ValueError, "`processes` must be at least 1"),
    (lambda: BagSampler(ONES, bags=1, accumulate=0), ValueError, "`accumulate` must be at least 1"),
    (lambda: BagSampler(ONES, bags=1, process=-1), ValueError, "`process` must be at least 0; got -1"),
    (
        lambda: BagSampler(ONES, bags=1, processes=2, process=2),
        ValueError,
        "`process` must be less than `processes`, 2, as it counts from 0; got 2.",
    ),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_plans_that_cannot_be(case: int) -> None:
    make, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        make()
