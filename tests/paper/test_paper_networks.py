"""The paper's networks, layer by layer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from kofn import learners
from paper.cells import PRESETS, TABLES, runs
from paper.networks import (
    NETWORKS,
    CropAndFlip,
    cifar_resnet8,
    cifar_resnet18,
    colon_convnet,
    mnist_convnet,
    pu_mnist_mlp,
)
from paper.recipes import recipe, split_recipe


def count_parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


# Weights and biases of each layer, by hand.
ADULT = (108 * 2048 + 2048) + (2048 * 64 + 64) + (64 + 1)
MAGIC = (10 * 2048 + 2048) + (2048 + 1)
PU_MNIST = (784 * 5000 + 5000) + (5000 * 5000 + 5000) + (5000 * 50 + 50) + (50 + 1)
MNIST = (5 * 5 * 1 * 20 + 20) + (5 * 5 * 20 * 50 + 50) + (4 * 4 * 50 * 500 + 500) + (500 + 1)
COLON = (4 * 4 * 3 * 36 + 36) + (3 * 3 * 36 * 48 + 48) + (5 * 5 * 48 * 512 + 512) + (512 * 512 + 512) + (512 + 1)
# Convolutions have no bias; a batch norm has a scale and a shift for each channel.
STEM = 9 * 3 * 64 + 2 * 64
STAGE_1 = 4 * (9 * 64 * 64 + 2 * 64)
STAGE_2 = (9 * 64 * 128 + 2 * 128) + 3 * (9 * 128 * 128 + 2 * 128) + (64 * 128 + 2 * 128)
STAGE_3 = (9 * 128 * 256 + 2 * 256) + 3 * (9 * 256 * 256 + 2 * 256) + (128 * 256 + 2 * 256)
STAGE_4 = (9 * 256 * 512 + 2 * 512) + 3 * (9 * 512 * 512 + 2 * 512) + (256 * 512 + 2 * 512)
RESNET = STEM + STAGE_1 + STAGE_2 + STAGE_3 + STAGE_4 + (512 + 1)
SMALL = (9 * 3 * 24 + 2 * 24) + sum(9 * c * 2 * c + 9 * 4 * c * c + 2 * c * c + 3 * 4 * c for c in (24, 48, 96)) + 193

MADE = [
    (lambda: learners.mlp(108, (2048, 64)), (108,), ADULT, 354_433),
    (lambda: learners.mlp(10, (2048,)), (10,), MAGIC, 24_577),
    (pu_mnist_mlp, (784,), PU_MNIST, 29_180_101),
    (mnist_convnet, (1, 28, 28), MNIST, 426_571),
    (colon_convnet, (3, 27, 27), COLON, 895_445),
    (cifar_resnet18, (3, 32, 32), RESNET, 11_169_345),
    (cifar_resnet8, (3, 32, 32), SMALL, 680_281),
]


@pytest.mark.parametrize(("make", "shape", "by_hand", "total"), MADE, ids=lambda value: getattr(value, "__name__", ""))
def test_networks(make: Callable[[], nn.Sequential], shape: tuple[int, ...], by_hand: int, total: int) -> None:
    network = make()
    assert count_parameters(network) == by_hand == total
    assert network(torch.randn(3, *shape)).shape == (3,)
    network.eval()
    logits = network(torch.randn(1, *shape))
    assert logits.shape == (1,)  # one instance keeps its dimension
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_dropout_is_off_in_eval_mode() -> None:
    torch.manual_seed(0)
    network, patches = colon_convnet(), torch.randn(4, 3, 27, 27)
    assert not torch.equal(network(patches), network(patches))
    network.eval()
    assert torch.equal(network(patches), network(patches))
    assert [layer.p for layer in network if isinstance(layer, nn.Dropout)] == [0.5, 0.5]


def test_resnet_scores_an_image_alone_in_eval_mode_only() -> None:
    torch.manual_seed(0)
    network, images = cifar_resnet18(), torch.randn(4, 3, 32, 32)
    assert not torch.allclose(network(images)[:2], network(images[:2]))  # batch statistics
    network.eval()
    torch.testing.assert_close(network(images)[:2], network(images[:2]), rtol=1e-4, atol=1e-5)


def test_crop_and_flip_moves_and_mirrors_whole_images() -> None:
    torch.manual_seed(0)
    images = torch.arange(1.0, 3 * 6 * 6 + 1).view(1, 3, 6, 6).repeat(200, 1, 1, 1)
    wide = nn.functional.pad(images[:1], (1,) * 4)
    places = [wide[..., down : down + 6, right : right + 6] for down in range(3) for right in range(3)]
    allowed = {tuple(each.flatten().tolist()) for place in places for each in (place, place.flip(-1))}
    seen = {tuple(each.flatten().tolist()) for each in CropAndFlip(1)(images)}
    assert seen == allowed  # 18 different images, each of them met in 200 draws


def test_pooling_before_relu_changes_nothing() -> None:
    torch.manual_seed(0)
    network, digits = mnist_convnet(), torch.randn(7, 1, 28, 28)
    order = [0, 2, 1, 3, 5, 4, *range(6, len(network))]  # as the paper names the layers
    named = nn.Sequential(*(network[place] for place in order))
    assert [type(layer) for layer in list(named)[:3]] == [nn.Conv2d, nn.ReLU, nn.MaxPool2d]
    outputs = [each(digits) for each in (network, named)]
    grads = [torch.autograd.grad(output.square().sum(), next(network.parameters()))[0] for output in outputs]
    torch.testing.assert_close(*outputs, rtol=0, atol=0)
    torch.testing.assert_close(*grads, rtol=0, atol=0)


def test_resnet_halves_the_image_three_times() -> None:
    features = cifar_resnet18().eval()[:-3](torch.zeros(1, 3, 32, 32))
    assert features.shape == (1, 512, 4, 4)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_recipe_has_its_network(preset: str) -> None:
    """Images by the name of a network; tables by the widths that the paper gives."""
    named = set()
    for table in TABLES:
        for run in runs(table, seeds=1, preset=preset):
            options = recipe(table, run.cell, run.method, preset)
            if "epochs" not in options:
                continue
            network, _ = split_recipe(options)
            name = options.get("module", "mlp")
            named.add(name)
            assert network.module is NETWORKS.get(name, name)
            if table == "llp":
                assert network.hidden == ([2048, 64] if run.cell["data"] == "adult" else [2048])
    small = {"cifar_resnet8"} if preset == "fast" else {"pu_mnist_mlp", "cifar_resnet18"}
    assert named == {"mlp", "mnist_convnet", "colon_convnet"} | small
