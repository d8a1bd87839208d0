"""The loss that a network steps on, the weights that are kept, the inputs that are taken."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from learner_cases import (
    FEATURES,
    SGD,
    halves,
    loss_of,
    mil_bags,
    network,
    some_bags,
    some_pu,
    stepped,
    train,
    weights,
)
from torch import Tensor, nn

from kofn import Bags, learners, losses
from kofn.learners import ByLossAndError, CountObjective, Network, PooledObjective, Problem, PUObjective

RANKINGS: tuple[Any, ...] = ("epoch", "batch")


def wrong_halves() -> tuple[Problem, Problem]:
    """Labels of the validation bags are wrong: training makes the validation loss fall by chance, then rise."""
    data, valid = halves(some_bags(16), 10)
    return data, replace(valid, labels=valid.bags.sizes - valid.labels)


def test_the_loss_of_a_full_batch_is_the_loss() -> None:
    data, net = some_bags(), network()
    loss = loss_of(net, data)
    found = train(data, optimizer=SGD, batch_size=10)
    assert found.history == [{"epoch": 1, "train_loss": pytest.approx(loss.item(), rel=1e-6)}]
    torch.testing.assert_close(found.weights, stepped(net, loss))


def test_the_loss_of_a_pu_step_is_the_loss() -> None:
    data, net = some_pu(), network()
    x = net(torch.from_numpy(data.instances)).flatten()
    loss = losses.pu_loss(x[data.labeled], x[~data.labeled], 0.5, positive_weight=0.5 * 30)
    found = train(data, optimizer=SGD)
    assert found.history[0]["train_loss"] == pytest.approx(loss.item(), rel=1e-5)
    torch.testing.assert_close(found.weights, stepped(net, loss), rtol=1e-4, atol=1e-6)


def test_cvir_ranks_all_unlabelled_before_an_epoch() -> None:
    """With two bags an epoch: what is ignored is chosen from both by the network that the epoch starts with."""
    objective = PUObjective(0.3, "cvir")
    data, net = some_pu(60, size=25, objective=objective), network()
    seen: list[Tensor] = []
    net.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].clone()) if module.training else None)
    x = net.eval()(torch.from_numpy(data.instances)).flatten().detach()
    train(data, net=net.train(), optimizer=SGD, batch_size=1)
    unlabelled = (~data.labeled).nonzero().flatten()
    kept = unlabelled[x[unlabelled].argsort()[: round(0.7 * len(unlabelled))]]
    used = torch.cat(seen)
    position = (torch.from_numpy(data.instances)[None] == used[:, None]).all(-1).nonzero()[:, 1]
    assert len(seen) == len(data.bags) == 2  # as many steps
    assert set(position.tolist()) == set(kept.tolist()) | set(data.labeled.nonzero().flatten().tolist())
    batch = train(replace(data, objective=replace(objective, ranking="batch")), optimizer=SGD, batch_size=1)
    assert torch.isfinite(batch.weights).all()


@pytest.mark.parametrize("ranking", RANKINGS)
def test_cvir_warms_up_with_labelled_against_unlabelled(ranking: Any) -> None:
    """In the first epochs no unlabelled row is ignored; after them it is plain CVIR."""
    data, net = some_pu(objective=PUObjective(0.3, "cvir", ranking=ranking, warm_up=1)), network()
    x = net(torch.from_numpy(data.instances)).flatten()
    loss = losses.cvir_loss(x[data.labeled], x[~data.labeled], 0.0)
    found = train(data, optimizer=SGD)
    assert found.history[0]["train_loss"] == pytest.approx(loss.item(), rel=1e-5)
    torch.testing.assert_close(found.weights, stepped(net, loss), rtol=1e-4, atol=1e-6)
    plain = replace(data, objective=PUObjective(0.3, "cvir", ranking=ranking))
    assert torch.equal(data.ranked(zeros, 1).chosen, plain.ranked(zeros, 0).chosen)


def zeros(positions: Tensor) -> Tensor:
    return torch.zeros(len(positions))


def test_cvir_ranked_before_a_step_is_cvir_in_it() -> None:
    """With one bag an epoch both rankings see the same network and the same rows."""
    data = some_pu(objective=PUObjective(0.3, "cvir"))
    found = [train(replace(data, objective=PUObjective(0.3, "cvir", ranking=how)), optimizer=SGD) for how in RANKINGS]
    torch.testing.assert_close(found[0].weights, found[1].weights)
    assert found[0].history[0]["train_loss"] == pytest.approx(found[1].history[0]["train_loss"], rel=1e-6)


@pytest.mark.parametrize("l1", [0.0, 0.01])
@pytest.mark.parametrize("weight", [None, torch.arange(10).double() % 3])
@pytest.mark.parametrize("batch_size", [4, 10])
def test_accumulated_batches_are_one_step(batch_size: int, weight: Any, l1: float) -> None:
    """Steps of 4, 4 and 2 bags in three batches each: 2 + 1 + 1, 2 + 1 + 1 and 1 + 1 + none."""
    data = some_bags(weight=weight)
    one, three = (train(data, optimizer=SGD, l1=l1, batch_size=batch_size, accumulate=n) for n in (1, 3))
    torch.testing.assert_close(three.weights, one.weights, rtol=1e-5, atol=1e-6)
    assert three.history[0]["train_loss"] == pytest.approx(one.history[0]["train_loss"], rel=1e-6)
    assert (one.weights - weights(network())).abs().max() > 0.01


def test_accumulated_pu_bags_are_one_step() -> None:
    """Five bags in steps of three and two: the oracle is a step on the mean of their losses."""
    data, net = some_pu(size=6), network()
    found = train(data, optimizer=SGD, batch_size=3, accumulate=3)
    dealt = data.deal(0, 0)
    from kofn.learners import BagSampler

    steps = [draw.items for draw in BagSampler(dealt.bags.sizes, bags=3, seed=0)]
    assert [len(step) for step in steps] == [3, 2]
    for step in steps:
        parts = []
        for bag in step.tolist():
            scores = net(torch.from_numpy(data.instances)[dealt.bags[bag]]).flatten()
            known = int(dealt.labels[bag])
            parts.append(losses.pu_loss(scores[:known], scores[known:], 0.5, positive_weight=0.5 * 6))
        nn.utils.vector_to_parameters(stepped(net, torch.stack(parts).mean()), net.parameters())
    torch.testing.assert_close(found.weights, weights(net), rtol=1e-4, atol=1e-6)


def test_l1_is_of_weights_and_not_of_biases() -> None:
    data, net = some_bags(), network()
    matrices = [p for name, p in net.named_parameters() if name.endswith("weight")]
    penalty = 0.1 * sum(p.abs().sum() for p in matrices)
    loss = loss_of(net, data)
    found = train(data, optimizer=SGD, l1=0.1, batch_size=10)
    torch.testing.assert_close(found.weights, stepped(net, loss + penalty))
    assert found.history[0]["train_loss"] == pytest.approx(loss.item(), rel=1e-6)  # the loss of bags, comparable


def test_l1_of_a_network_without_matrices() -> None:
    class Shift(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = nn.Parameter(torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            return x[:, 0] + self.by

    assert train(some_bags(), net=Shift(), l1=1.0).weights.abs().item() > 0


def test_weight_decay_pulls_towards_zero() -> None:
    """Of an objective without a gradient only the decay is left: Adam's first step is lr times its sign."""
    data = some_bags(objective=lambda x, y, o: 0.0 * x.sum() + 0.0 * y)
    before = weights(network())
    found = train(data, lr=0.01, weight_decay=0.5, batch_size=10)
    moved = before.abs() > 1e-3
    torch.testing.assert_close(found.weights[moved], (before - 0.01 * before.sign())[moved], rtol=1e-3, atol=1e-5)


def test_validation_is_without_dropout() -> None:
    """Known mistake 7: the validation loss is that of the network in evaluation mode."""
    data, valid = halves(some_bags(16), 10)
    found = train(data, valid, net=network(dropout=0.5, hidden=16), optimizer=SGD)
    net = found.network
    assert not net.training
    with torch.no_grad():
        assert found.history[0]["val_loss"] == pytest.approx(loss_of(net, valid).item(), rel=1e-6)
        assert abs(loss_of(net.train(), valid).item() - found.history[0]["val_loss"]) > 1e-3


def test_best_weights_are_those_of_the_best_epoch() -> None:
    seen: list[Tensor] = []
    options: Any = {"lr": 0.05, "epochs": 8, "callback": lambda net, entry: seen.append(weights(net))}
    found = train(*wrong_halves(), **options)
    val = [entry["val_loss"] for entry in found.history]
    best = val.index(min(val))
    assert val[-1] > val[best]
    assert found.best == best < 7
    assert torch.equal(found.weights, seen[best])
    assert not torch.equal(found.weights, seen[-1])


def test_best_buffers_are_kept_too() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(FEATURES, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    data, wrong = wrong_halves()
    found = train(data, wrong, net=net, lr=0.05, epochs=5, batch_size=10)
    assert found.best is not None
    assert found.best < 4
    assert dict(net.named_buffers())["1.num_batches_tracked"].item() == found.best + 1  # one batch an epoch
    with torch.no_grad():
        loss = loss_of(found.network, wrong).item()
    assert loss == pytest.approx(min(entry["val_loss"] for entry in found.history), rel=1e-5)


def test_without_validation_the_last_weights_are_kept() -> None:
    seen: list[Tensor] = []
    found = train(some_bags(), epochs=3, callback=lambda net, entry: seen.append(weights(net)))
    assert found.best is None
    assert torch.equal(found.weights, seen[-1])
    assert [set(entry) for entry in found.history] == [{"epoch", "train_loss"}] * 3


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_training_loss_that_is_not_finite(bad: float) -> None:
    """An infinite feature makes a certain instance: a finite loss, whose step makes the weights NaN."""
    data = some_bags()
    data.instances[0, 0] = bad
    with pytest.raises(ValueError, match=r"the training loss became nan in epoch 1\. Lower `lr`, scale"):
        train(data)


def test_a_validation_loss_that_is_not_finite() -> None:
    data, valid = halves(some_bags(14), 10)
    valid.instances[valid.bags.index[0], 0] = float("nan")
    with pytest.raises(ValueError, match=r"the validation loss became nan"):
        train(data, valid, epochs=3)


@pytest.mark.parametrize("pooling", [learners.AttentionPooling, learners.GatedAttentionPooling])
def test_a_network_that_pools(pooling: Any) -> None:
    def made() -> learners.AttentionMIL:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return learners.AttentionMIL(nn.Linear(FEATURES, 4), pooling(4, hidden=3))

    data = replace(mil_bags(), objective=PooledObjective(), rule=ByLossAndError(), pooling="attention")
    net, x = made(), torch.from_numpy(data.instances)
    loss = nn.functional.binary_cross_entropy_with_logits(net(x, offsets=data.bags.offsets), data.labels.float())
    found = train(data, data, net=made(), optimizer=SGD, batch_size=10)
    torch.testing.assert_close(found.weights, stepped(net, loss))
    with torch.no_grad():
        logits = found.network(x, offsets=data.bags.offsets)
    wrong = ((logits > 0) != (data.labels > 0)).double().mean().item()
    entry = found.history[0]
    assert entry["criterion"] == pytest.approx(entry["val_loss"] + wrong)


def test_overlapping_bags() -> None:
    lists, counts = [[0, 1, 2], [2, 1], [2], [0, 3, 1]], torch.tensor([1, 1, 0, 2])
    data, net = some_bags(bags=10), network()
    rows = torch.from_numpy(data.instances)
    loss = torch.stack([losses.llp_loss(net(rows[i]).flatten(), k) for i, k in zip(lists, counts, strict=True)]).mean()
    shared = replace(data, bags=Bags.from_lists(lists), labels=counts, proportions=counts / 4)
    torch.testing.assert_close(train(shared, optimizer=SGD, batch_size=4).weights, stepped(net, loss))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_batches_by_instances_see_every_bag_once(accumulate: int) -> None:
    """With a step size of zero the training loss is that of all bags, whatever the batches."""
    data = some_bags()
    loss = loss_of(network(), data).item()
    still: Any = {"optimizer": partial(torch.optim.SGD, lr=0.0), "max_instances": 6, "epochs": 2}
    for entry in train(data, data, accumulate=accumulate, **still).history:
        assert entry["train_loss"] == pytest.approx(loss, rel=1e-6)
        assert entry["val_loss"] == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("weight", [None, torch.arange(17).double() % 3])
def test_the_validation_loss_is_the_mean_over_bags_of_uneven_batches(weight: Any) -> None:
    data, valid = halves(some_bags(17, weight=weight), 10)
    found = train(data, valid, optimizer=SGD, batch_size=3)
    with torch.no_grad():
        loss = loss_of(found.network, valid).item()
    assert found.history[0]["val_loss"] == pytest.approx(loss, rel=1e-6)


def test_the_loss_of_a_step_is_weighted() -> None:
    data, net = some_bags(weight=torch.arange(10).double() % 3), network()
    assert data.weight is not None
    each = data.losses(net(torch.from_numpy(data.instances)).flatten())
    loss = (each * data.weight).sum() / data.weight.sum()
    found = train(data, optimizer=SGD, batch_size=10)
    assert found.history[0]["train_loss"] == pytest.approx(loss.item(), rel=1e-6)
    torch.testing.assert_close(found.weights, stepped(net, loss))


def test_a_bag_of_weight_0_may_have_any_loss() -> None:
    def endless(logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        found = CountObjective()(logits, labels, offsets)
        return torch.where(offsets.diff() == data.bags.sizes[0], found + torch.inf, found)

    data = some_bags()
    weight = (data.bags.sizes != data.bags.sizes[0]).double()
    found = train(some_bags(weight=weight, objective=endless), optimizer=SGD, batch_size=10)
    plain = train(some_bags(weight=weight), optimizer=SGD, batch_size=10)
    assert torch.equal(found.weights, plain.weights)
    assert found.history == plain.history


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "`epochs` must be at least 1; got 0"),
        ({"accumulate": 0}, "`accumulate` must be at least 1; got 0"),
        ({"epochs": 2.5}, "`epochs` must be an integer"),
        ({"patience": 0}, "`patience` must be at least 1; got 0"),
        ({"patience": 1.5}, "`patience` must be an integer"),
        ({"schedule": "linear"}, "`schedule` must be one of 'constant', 'cosine', 'one-cycle'; got 'linear'"),
        ({"precision": "16"}, "`precision` must be one of 'float32', 'bfloat16'; got '16'"),
        ({"device": "tpu"}, "`device` must be one of 'cpu', 'cuda', 'auto'; got 'tpu'"),
        ({"batch_size": 3, "max_instances": 5}, "either `batch_size` or `max_instances` must be given, not both"),
        ({"start": 0.0}, "`start` must be 'rate', None, or a probability above 0 and below 1; got 0.0"),
        ({"start": "half"}, "`start` must be 'rate', None, or a probability .* got 'half'"),
        ({"start": 0.1, "module": nn.Linear(FEATURES, 1)}, "ends in a kofn.learners.Logit when `start` is a number"),
    ],
    ids=str,
)
def test_options_that_are_none(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Network(**options).fit(some_bags(), seed=0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="`device` must be one that there is: 'cpu' or 'auto'; torch finds no GPU"):
        Network(device="cuda").fit(some_bags(), seed=0)
