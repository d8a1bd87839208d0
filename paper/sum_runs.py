"""Sums of digits: bags of MNIST images, of each of which only the sum of the digits is known. Not in the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

import torch
from torch import Tensor, nn

from kofn.datasets import Labelled
from kofn.losses import count_loss
from kofn.targets import Sum
from paper.mil_runs import load
from paper.outcome import Outcome
from paper.recipes import Recipe

DIGITS = torch.arange(10)


def run(cell: Mapping[str, Any], method: str, recipe: Recipe, seed: int) -> Outcome:
    """Train on bags whose sums are known, measure the accuracy of test images."""
    digits = load(recipe["pixels"])
    network, curve = fit(digits.train, cell["bag_size"], recipe, seed)
    return Outcome(score(network, digits.test), curve)


def protocol(cell: Mapping[str, Any]) -> dict[str, Any]:
    """How many images are in bags."""
    return {"instances": 60_000 // cell["bag_size"] * cell["bag_size"]}


def fit(digits: Labelled, bag_size: int, recipe: Recipe, seed: int) -> tuple[nn.Sequential, list[dict[str, float]]]:
    """The MIL table's network with ten outputs, trained on all images, dealt into bags at random with each seed."""
    from kofn.learners import Logit
    from paper.networks import channels_last, mnist_convnet

    torch.manual_seed(seed)
    network = channels_last(*mnist_convnet()[:-1].children(), Logit(500, 10))
    bags = torch.randperm(len(digits))[: len(digits) // bag_size * bag_size].reshape(-1, bag_size)
    totals = digits.labels[bags].sum(-1)
    optimizer = torch.optim.Adam(network.parameters())
    epochs, size = recipe["epochs"], recipe["batch_size"]
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe["lr"], epochs=epochs, steps_per_epoch=ceil(len(bags) / size)
    )
    curve = []
    for _ in range(epochs):
        losses = []
        for chosen in torch.randperm(len(bags)).split(size):
            images = digits.instances[bags[chosen].flatten()]
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=recipe["precision"] == "bfloat16"):
                logits = network(images)
            loss = LOSSES[recipe["loss"]](logits.float().unflatten(0, (-1, bag_size)), totals[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.detach())
        curve.append({"train_loss": float(torch.stack(losses).mean())})
    return network, curve


def score(network: nn.Sequential, digits: Labelled) -> dict[str, float]:
    """Accuracy and cross-entropy of images."""
    with torch.no_grad():
        logits = torch.cat([network(images) for images in digits.instances.split(1000)]).double()
    return {
        "accuracy": float((logits.argmax(1) == digits.labels).double().mean()),
        "cross_entropy": float(nn.functional.cross_entropy(logits, digits.labels)),
    }


def likelihood(logits: Tensor, totals: Tensor) -> Tensor:
    """-log P(T = total), the mean over bags."""
    return count_loss(logits, Sum(totals, DIGITS))


def squares(logits: Tensor, totals: Tensor) -> Tensor:
    """(E T - total)^2."""
    return (totals - moments(logits)[0]).square().mean()


def gaussian(logits: Tensor, totals: Tensor) -> Tensor:
    """-log of the normal density of mean E T and variance var T, at the total, without its constant."""
    mean, variance = moments(logits)
    variance = variance.clamp(min=1 / 12)  # of a number that was rounded: a density has no largest value
    return (variance.log() / 2 + (totals - mean).square() / (2 * variance)).mean()


def moments(logits: Tensor) -> tuple[Tensor, Tensor]:
    """E T and var T of bags (b, n, 10).

    Examples:
        >>> moments(torch.zeros(1, 2, 10))  # two digits drawn at random
        (tensor([9.]), tensor([16.5000]))
    """
    p, values = logits.softmax(-1), DIGITS.to(logits.dtype)
    mean = p @ values
    return mean.sum(-1), (p @ values.square() - mean.square()).sum(-1)


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sum": likelihood,
    "squares": squares,
    "gaussian": gaussian,
}
