"""The loss that is stepped on, the weights that are kept, the inputs that are taken."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback
from torch import Tensor, nn
from training_cases import (
    FEATURES,
    SGD,
    llp_data,
    llp_module,
    mil_bags,
    network,
    pu_data,
    pu_module,
    some_bags,
    some_pu,
    weights,
    whole,
)

from kofn import Bags, losses, models
from kofn.batches import BagDataset
from kofn.training import BagObjective, ByLossAndError, CountData, CountModule, CountObjective, PooledObjective, fit


class Epochs(Callback):
    """Remembers the weights after each epoch."""

    def __init__(self) -> None:
        self.weights: list[Tensor] = []

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.weights.append(weights(pl_module))


def stepped(net: nn.Module, loss: Tensor, lr: float = 0.3) -> Tensor:
    """Weights of a network after one step of gradient descent, written out."""
    slopes = torch.autograd.grad(loss, list(net.parameters()))
    return torch.cat([(p - lr * g).detach().flatten() for p, g in zip(net.parameters(), slopes, strict=True)])


def test_the_loss_of_a_full_batch_is_the_loss() -> None:
    module, data = llp_module(optimizer=SGD), some_bags()
    net = network()
    x, offsets, counts, _ = whole(data)
    loss = losses.llp_loss(net(x).flatten(), counts, offsets=offsets)
    fit(module, CountData(data, batch_size=len(data)), epochs=1)
    assert module.history == [{"epoch": 0, "train_loss": pytest.approx(loss.item(), rel=1e-6)}]
    torch.testing.assert_close(weights(module), stepped(net, loss))


def test_the_loss_of_a_pu_step_is_the_loss() -> None:
    module, data, net = pu_module(optimizer=SGD), some_pu(), network()
    x = net(data.instances).flatten()
    loss = losses.pu_loss(x[data.labeled], x[~data.labeled], 0.5)
    fit(module, CountData(data, batch_size=30, positives=10), epochs=1)
    assert module.history[0]["train_loss"] == pytest.approx(loss.item(), rel=1e-5)
    torch.testing.assert_close(weights(module), stepped(net, loss), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("l1", [0.0, 0.01])
@pytest.mark.parametrize("batch_size", [4, 10])
def test_accumulated_batches_are_one_step(batch_size: int, l1: float) -> None:
    """Steps of 4, 4 and 2 bags in three batches each: 2 + 1 + 1, 2 + 1 + 1 and 1 + 1 + none."""
    one, three = (llp_module(optimizer=SGD, l1=l1) for _ in range(2))
    fit(one, llp_data(batch_size=batch_size), epochs=1)
    fit(three, llp_data(batch_size=batch_size), epochs=1, accumulate=3)
    torch.testing.assert_close(weights(three), weights(one), rtol=1e-5, atol=1e-6)
    assert three.history[0]["train_loss"] == pytest.approx(one.history[0]["train_loss"], rel=1e-6)
    assert (weights(one) - weights(llp_module())).abs().max() > 0.01


def test_accumulated_pu_bags_are_one_step() -> None:
    """Five bags in steps of three and two: the oracle is a step on the mean of their losses."""
    module, net, data = pu_module(optimizer=SGD), network(), pu_data(batch_size=6)
    fit(module, data, epochs=1, accumulate=3)
    bags = list(CountData(data.train, batch_size=6).train_dataloader())
    assert len(bags) == 5
    for step in (bags[:3], bags[3:]):
        parts = []
        for x, _, (known,), _ in step:
            scores = net(x).flatten()
            parts.append(losses.pu_loss(scores[:known], scores[known:], 0.5))
        nn.utils.vector_to_parameters(stepped(net, torch.stack(parts).mean()), net.parameters())
    torch.testing.assert_close(
        weights(module), nn.utils.parameters_to_vector(net.parameters()).detach(), rtol=1e-4, atol=1e-6
    )


def test_l1_is_of_weights_and_not_of_biases() -> None:
    module, data, net = llp_module(optimizer=SGD, l1=0.1), some_bags(), network()
    x, offsets, counts, _ = whole(data)
    matrices = [p for name, p in net.named_parameters() if name.endswith("weight")]
    penalty = 0.1 * sum(p.abs().sum() for p in matrices)
    loss = losses.llp_loss(net(x).flatten(), counts, offsets=offsets)
    fit(module, CountData(data, batch_size=len(data)), epochs=1)
    torch.testing.assert_close(weights(module), stepped(net, loss + penalty))
    assert module.history[0]["train_loss"] == pytest.approx(loss.item(), rel=1e-6)  # the loss of bags, comparable


def test_l1_of_a_network_without_matrices() -> None:
    class Shift(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = nn.Parameter(torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            return x[:, 0] + self.by

    module = CountModule(Shift(), CountObjective(), l1=1.0)
    fit(module, llp_data(), epochs=1)
    assert weights(module).abs().item() > 0


def test_weight_decay_pulls_towards_zero() -> None:
    """Of an objective without a gradient only the decay is left: Adam's first step is lr times its sign."""
    module = CountModule(network(), lambda x, y, o: 0.0 * x, lr=0.01, weight_decay=0.5)
    before = weights(module)
    fit(module, llp_data(batch_size=10), epochs=1)
    moved = before.abs() > 1e-3
    torch.testing.assert_close(weights(module)[moved], (before - 0.01 * before.sign())[moved], rtol=1e-3, atol=1e-5)


def test_validation_is_without_dropout() -> None:
    """Known mistake 7: the logged loss is that of the network in evaluation mode."""
    net = network(dropout=0.5, hidden=16)
    module, data = llp_module(network=net, optimizer=SGD), llp_data(6)
    fit(module, data, epochs=1)
    assert isinstance(data.valid, BagDataset)
    x, offsets, counts, _ = whole(data.valid)

    def loss() -> float:
        with torch.no_grad():
            return losses.llp_loss(net(x).flatten(), counts, offsets=offsets).item()

    net.eval()
    assert module.history[0]["val_loss"] == pytest.approx(loss(), rel=1e-6)
    net.train()
    assert abs(loss() - module.history[0]["val_loss"]) > 1e-3


def test_best_weights_are_those_of_the_best_epoch() -> None:
    """Labels of the validation bags are wrong: training makes the validation loss fall by chance, then rise."""
    train, valid = some_bags(), some_bags(6, seed=1)
    wrong = BagDataset(valid.instances, valid.bags, valid.bags.sizes - valid.labels)
    module, epochs = llp_module(lr=0.05), Epochs()
    fit(module, CountData(train, wrong), epochs=8, trainer={"callbacks": [epochs]})
    val = [entry["val_loss"] for entry in module.history]
    best = val.index(min(val))
    assert val[-1] > val[best]
    assert module.best_epoch == best < 7
    assert torch.equal(weights(module), epochs.weights[best])
    assert not torch.equal(weights(module), epochs.weights[-1])


def test_best_buffers_are_kept_too() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(FEATURES, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    module = llp_module(network=net, lr=0.05)
    train, valid = some_bags(), some_bags(6, seed=1)
    wrong = BagDataset(valid.instances, valid.bags, valid.bags.sizes - valid.labels)
    fit(module, CountData(train, wrong), epochs=5)
    assert module.best_epoch is not None
    assert module.best_epoch < 4
    assert dict(net.named_buffers())["1.num_batches_tracked"].item() == module.best_epoch + 1  # one batch an epoch
    x, offsets, counts, _ = whole(wrong)
    with torch.no_grad():
        loss = losses.llp_loss(net.eval()(x).flatten(), counts, offsets=offsets).item()
    assert loss == pytest.approx(min(entry["val_loss"] for entry in module.history), rel=1e-5)


def test_without_validation_the_last_weights_are_kept() -> None:
    module, epochs = llp_module(), Epochs()
    fit(module, llp_data(), epochs=3, trainer={"callbacks": epochs})
    assert module.best_epoch is None
    assert torch.equal(weights(module), epochs.weights[-1])
    assert [set(entry) for entry in module.history] == [{"epoch", "train_loss"}] * 3


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_training_loss_that_is_not_finite(bad: float) -> None:
    """An infinite feature makes a certain instance: a finite loss, whose step makes the weights NaN."""
    data = some_bags()
    data.instances[0, 0] = bad
    with pytest.raises(ValueError, match=r"the training loss became nan in epoch 0\. Lower `lr`, scale"):
        fit(llp_module(), CountData(data), epochs=1)


def test_a_validation_loss_that_is_not_finite() -> None:
    valid = some_bags(4, seed=1)
    valid.instances[0, 0] = float("nan")
    with pytest.raises(ValueError, match=r"the validation loss became nan in epoch 0"):
        fit(llp_module(), CountData(some_bags(), valid), epochs=3)


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        (nn.Linear(FEATURES, 2), r"\(\d+, 2\)"),
        (nn.Sequential(nn.Linear(FEATURES, 1), nn.Unflatten(1, (1, 1))), r"\(\d+, 1, 1\)"),
        (nn.Sequential(nn.Linear(FEATURES, 2), nn.Flatten(0)), r"\(\d+,\)"),
    ],
    ids=["two", "deep", "flat"],
)
def test_a_network_must_give_one_logit(net: nn.Module, shape: str) -> None:
    module = llp_module(network=net)
    with pytest.raises(ValueError, match=rf"one logit for each instance.*its output has shape {shape}\."):
        fit(module, llp_data(), epochs=1)


def test_float64_instances_into_a_float32_network() -> None:
    data = some_bags()
    same, double = llp_module(), llp_module()
    fit(same, CountData(data), epochs=2)
    fit(double, CountData(BagDataset(data.instances.double(), data.bags, data.labels)), epochs=2)
    assert torch.equal(weights(double), weights(same))


@pytest.mark.parametrize("net", [network(), nn.Sequential(nn.Linear(FEATURES, 1), nn.Flatten(0))], ids=["m 1", "m"])
def test_a_float64_network_keeps_its_precision(net: nn.Sequential) -> None:
    net = net.double()
    data = some_bags(dtype=torch.float64)
    x, offsets, counts, _ = whole(data)
    loss = losses.llp_loss(net(x).flatten(), counts, offsets=offsets)
    wanted = stepped(net, loss)
    module = llp_module(network=net, optimizer=SGD)
    fit(module, CountData(data, batch_size=len(data)), epochs=1, precision="64-true")
    torch.testing.assert_close(weights(module), wanted, rtol=1e-13, atol=1e-14)
    assert module.history[0]["train_loss"] == pytest.approx(loss.item(), rel=1e-14)


def test_bytes_and_a_transform() -> None:
    data = some_bags()
    stored = (data.instances.clamp(-2, 2) * 60 + 128).to(torch.uint8)
    small = BagDataset(stored, data.bags, data.labels, transform=lambda x: x.float() / 64 - 2)
    large = BagDataset(stored.float() / 64 - 2, data.bags, data.labels)
    bytes_, floats = llp_module(), llp_module()
    fit(bytes_, CountData(small, batch_size=3), epochs=2)
    fit(floats, CountData(large, batch_size=3), epochs=2)
    assert torch.equal(weights(bytes_), weights(floats))


def test_bytes_into_a_network_that_takes_them() -> None:
    data = some_bags()
    words = BagDataset((data.instances[:, 0] > 0).byte(), data.bags, data.labels)

    class Look(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(2, 1, _weight=torch.zeros(2, 1))

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = self.table(x.int())
            return logits

    module = CountModule(Look(), CountObjective(), lr=0.1)
    fit(module, CountData(words), epochs=60)
    low, high = weights(module).tolist()
    assert low < 0 < high


@pytest.mark.parametrize("objective", ["count", "mil", "pu"])
def test_mixed_precision_is_close(objective: str) -> None:
    made = {
        "count": (lambda: llp_module(optimizer=SGD), lambda: llp_data(4)),
        "mil": (
            lambda: CountModule(network(), BagObjective("max"), optimizer=SGD),
            lambda: CountData(mil_bags(), mil_bags(4, seed=1)),
        ),
        "pu": (lambda: pu_module(optimizer=SGD), lambda: pu_data(16, batch_size=10)),
    }[objective]
    single, mixed = made[0](), made[0]()
    fit(single, made[1](), epochs=2)
    fit(mixed, made[1](), epochs=2, precision="bf16-mixed")
    assert weights(mixed).dtype == torch.float32
    assert not torch.equal(weights(mixed), weights(single))
    torch.testing.assert_close(weights(mixed), weights(single), rtol=0.05, atol=0.02)
    for a, b in zip(mixed.history, single.history, strict=True):
        assert a["val_loss"] == pytest.approx(b["val_loss"], rel=0.02)


def test_half_precision_reaches_the_objective_as_float32() -> None:
    seen: set[torch.dtype] = set()

    def watch(logits: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
        seen.add(logits.dtype)
        return CountObjective()(logits, labels, offsets)

    fit(CountModule(network(), watch), llp_data(4), epochs=1, precision="bf16-mixed")
    assert seen == {torch.float32}


@pytest.mark.parametrize("pooling", [models.AttentionPooling, models.GatedAttentionPooling])
def test_a_network_that_pools(pooling: Any) -> None:
    def made() -> models.AttentionMIL:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return models.AttentionMIL(nn.Linear(FEATURES, 4), pooling(4, hidden=3))

    data, net = mil_bags(), made()
    x, offsets, labels, _ = whole(data)
    loss = nn.functional.binary_cross_entropy_with_logits(net(x, offsets=offsets), labels.float())
    module = CountModule(made(), PooledObjective(), rule=ByLossAndError(), optimizer=SGD)
    fit(module, CountData(data, data, batch_size=len(data)), epochs=1)
    torch.testing.assert_close(weights(module), stepped(net, loss))
    with torch.no_grad():
        logits = module.network(x, offsets=offsets)
    wrong = ((logits > 0) != (labels > 0)).double().mean().item()
    entry = module.history[0]
    assert entry["criterion"] == pytest.approx(entry["val_loss"] + wrong)


def test_overlapping_bags() -> None:
    rows = some_bags().instances
    lists = [[0, 1, 2], [2, 1], [2], [0, 3, 1]]
    counts = torch.tensor([1, 1, 0, 2])
    net = network()
    loss = torch.stack([losses.llp_loss(net(rows[i]).flatten(), k) for i, k in zip(lists, counts, strict=True)]).mean()
    module = llp_module(optimizer=SGD)
    fit(module, CountData(BagDataset(rows, Bags.from_lists(lists), counts), batch_size=4), epochs=1)
    torch.testing.assert_close(weights(module), stepped(net, loss))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_batches_by_instances_see_every_bag_once(accumulate: int) -> None:
    """With a step size of zero the training loss is that of all bags, whatever the batches."""
    module, data = llp_module(optimizer=partial(torch.optim.SGD, lr=0.0)), some_bags()
    x, offsets, counts, _ = whole(data)
    loss = losses.llp_loss(module.network(x).flatten(), counts, offsets=offsets).item()
    fit(module, CountData(data, data, batch_size=None, max_instances=6), epochs=2, accumulate=accumulate)
    for entry in module.history:
        assert entry["train_loss"] == pytest.approx(loss, rel=1e-6)
        assert entry["val_loss"] == pytest.approx(loss, rel=1e-6)


def test_the_validation_loss_is_the_mean_over_bags_of_uneven_batches() -> None:
    module, data = llp_module(optimizer=SGD), llp_data(7, batch_size=3)
    fit(module, data, epochs=1)
    assert isinstance(data.valid, BagDataset)
    x, offsets, counts, _ = whole(data.valid)
    with torch.no_grad():
        loss = losses.llp_loss(module.network(x).flatten(), counts, offsets=offsets).item()
    assert module.history[0]["val_loss"] == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize(("epochs", "accumulate", "name"), [(0, 1, "epochs"), (1, 0, "accumulate"), (2.5, 1, "epochs")])
def test_numbers_that_are_none(epochs: Any, accumulate: int, name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"`{name}` must be (at least 1|a whole number); got"):
        fit(llp_module(), llp_data(), epochs=epochs, accumulate=accumulate)


def test_data_need_one_size() -> None:
    with pytest.raises(ValueError, match=r"either `batch_size` or `max_instances`"):
        CountData(some_bags(), max_instances=5)
    with pytest.raises(ValueError, match=r"`max_instances` is for bags"):
        CountData(some_pu(), batch_size=None, max_instances=5)


def test_data_alone_make_loaders() -> None:
    """Without a trainer: one process, nothing accumulated."""
    data = llp_data(4, batch_size=4)
    assert [len(batch.labels) for batch in data.train_dataloader()] == [4, 4, 2]
    assert [batch.share for batch in data.train_dataloader()] == [1.0, 1.0, 1.0]
    assert llp_data().val_dataloader() == []
