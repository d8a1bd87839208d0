"""The networks of the paper's tables: one logit an instance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard, cast

import torch
from torch import Tensor, nn


class Logit(nn.Linear):
    """A linear layer with one output and no dimension for it: (..., features) to logits (...).

    Examples:
        >>> import torch
        >>> from kofn import models
        >>> models.Logit(3)(torch.zeros(5, 3)).shape
        torch.Size([5])
    """

    def __init__(self, features: int) -> None:
        super().__init__(features, 1)

    def forward(self, features: Tensor) -> Tensor:
        return super().forward(features).squeeze(-1)


def mlp(inputs: int, hidden: Sequence[int] = (), *, dropout: float = 0.0) -> nn.Sequential:
    """A multi-layer perceptron with one logit: for each hidden width a linear layer, a ReLU and dropout.

    Args:
        inputs: number of features of an instance.
        hidden: widths of the hidden layers; none of them makes a linear model.
        dropout: probability to drop a hidden unit, in training mode only.

    Returns:
        A network from features (..., inputs) to logits (...).

    Examples:
        >>> import torch
        >>> from kofn import models
        >>> models.mlp(10, (32, 8))(torch.zeros(4, 10)).shape
        torch.Size([4])
    """
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        inputs = width
    return nn.Sequential(*layers, Logit(inputs))


def ends_in_logit(network: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a network is layers in a row, of which the last is a `Logit`."""
    return isinstance(network, nn.Sequential) and len(network) > 0 and isinstance(network[-1], Logit)


def start_at_rate(network: nn.Sequential, rate: float) -> nn.Sequential:
    """Let a new network begin at a base rate: its last bias becomes logit(rate).

    A new network says about one half of every instance, so that a bag of n has a positive one with probability
    1 - 2^-n: at n = 100 nothing is left of the gradient of a positive bag, and training first spends its steps on
    forgetting that. If a share q of the bags is positive, begin at

        rate = 1 - (1 - q)^(1 / n),   for which P(S >= 1) = 1 - (1 - rate)^n = q.

    Args:
        network: ends in a `Logit`, as every network of this module does; changed in place.
        rate: the probability of an instance to be positive, above 0 and below 1.

    Returns:
        The same network.

    Raises:
        TypeError: the last layer is not a `Logit`.
        ValueError: a rate that is not between 0 and 1.

    Examples:
        >>> import torch
        >>> from kofn import models
        >>> network = models.start_at_rate(models.mlp(3, (8,)), 1 - 0.5 ** (1 / 100))
        >>> float(network[-1].bias.detach().sigmoid()).__round__(4)
        0.0069
    """
    if not ends_in_logit(network):
        raise TypeError(
            f"`network` must be a Sequential that ends in a Logit, such as models.mlp(10); got "
            f"{type(network).__name__}. Of another network set the bias of the last layer to logit(rate)."
        )
    if not 0 < rate < 1:
        raise ValueError(f"`rate` must be above 0 and below 1; got {rate}. It is the probability of one instance.")
    nn.init.constant_(cast(Logit, network[-1]).bias, math.log(rate / (1 - rate)))
    return network


def adult_mlp() -> nn.Sequential:
    """The paper's network for Adult, 2048-64-1 on 108 standardised features: (..., 108) to (...).

    Examples:
        >>> import torch
        >>> from kofn import models
        >>> models.adult_mlp()(torch.zeros(5, 108)).shape
        torch.Size([5])
    """
    return mlp(108, (2048, 64))


def magic_mlp() -> nn.Sequential:
    """The paper's network for MAGIC, 2048-1 on 10 features: (..., 10) to (...).

    Examples:
        >>> import torch
        >>> from kofn import models
        >>> models.magic_mlp()(torch.zeros(5, 10)).shape
        torch.Size([5])
    """
    return mlp(10, (2048,))


def pu_mnist_mlp() -> nn.Sequential:
    """The paper's network for positive-unlabelled MNIST, 5000-5000-50-1 on flat images: (..., 784) to (...).

    Examples:
        >>> import torch
        >>> from kofn import models
        >>> models.pu_mnist_mlp()(torch.zeros(5, 784)).shape
        torch.Size([5])
    """
    return mlp(784, (5000, 5000, 50))


def mnist_convnet() -> nn.Sequential:
    """The paper's network for bags of MNIST digits: (m, 1, 28, 28) to (m,).

    conv(5)-20, ReLU, maxpool(2), conv(5)-50, ReLU, maxpool(2), fc-500, ReLU, fc-1. ``mnist_convnet()[:-1]`` gives the
    embeddings (m, 500) of the attention baselines.

    Examples:
        >>> import torch
        >>> from kofn import models
        >>> models.mnist_convnet()(torch.zeros(3, 1, 28, 28)).shape
        torch.Size([3])
    """
    # 28 - 4 = 24, pooled 12, 12 - 4 = 8, pooled 4
    return channels_last(*_convolutions(1, (20, 5), (50, 5)), *mlp(50 * 4 * 4, (500,)))


def colon_convnet() -> nn.Sequential:
    """The paper's network for nuclei of colon tissue, patches of 27 x 27: (m, 3, 27, 27) to (m,).

    conv(4)-36, ReLU, maxpool(2), conv(3)-48, ReLU, maxpool(2), twice fc-512, ReLU and dropout, fc-1. The paper's table
    gives no rate of dropout, and two outputs with a log-sigmoid: the rate is 0.5 as in the code that it builds on
    (utayao/Atten_Deep_MIL), the output is one logit, which is what its loss takes. ``colon_convnet()[:-1]`` gives the
    embeddings (m, 512) of the attention baselines.

    Examples:
        >>> import torch
        >>> from kofn import models
        >>> models.colon_convnet()(torch.zeros(3, 3, 27, 27)).shape
        torch.Size([3])
    """
    # 27 - 3 = 24, pooled 12, 12 - 2 = 10, pooled 5
    return channels_last(*_convolutions(3, (36, 4), (48, 3)), *mlp(48 * 5 * 5, (512, 512), dropout=0.5))


def cifar_resnet18() -> nn.Sequential:
    """A ResNet-18 for images of 32 x 32: (m, 3, 32, 32) to (m,).

    The network of the paper's CIFAR experiments (as in Garg et al. 2021): a 3 x 3 stem without pooling, four stages of
    two residual blocks with 64, 128, 256 and 512 channels, average pooling, one logit. In training mode batch
    normalisation lets the instances of a batch see each other; score them in ``eval()`` mode.

    Examples:
        >>> import torch
        >>> from kofn import models
        >>> models.cifar_resnet18().eval()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2])

    Reference:
        He, Zhang, Ren, Sun. Deep Residual Learning for Image Recognition. CVPR 2016.
    """
    blocks: list[nn.Module] = []
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [_Residual(inputs, outputs, stride), _Residual(outputs, outputs, 1)]
        inputs = outputs
    return channels_last(*_normed(3, 64, 3), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(-3), Logit(512))


def channels_last(*layers: nn.Module) -> nn.Sequential:
    """The layers in a row, the channels of a pixel side by side in memory: a step is up to twice as fast."""
    network = nn.Sequential(*layers)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # in place; torch's stub lacks it
    return network


def _convolutions(inputs: int, *layers: tuple[int, int]) -> list[nn.Module]:
    """For each (channels, kernel) a convolution without padding, ReLU, halving; at last all in one row."""
    modules: list[nn.Module] = []
    for channels, kernel in layers:
        modules += [nn.Conv2d(inputs, channels, kernel), nn.ReLU(), nn.MaxPool2d(2)]
        inputs = channels
    return [*modules, nn.Flatten(-3)]


def _normed(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """A convolution that keeps the image's size (over the stride), batch-normalised."""
    return [
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False),  # the norm has the bias
        nn.BatchNorm2d(outputs),
    ]


class _Residual(nn.Module):
    """relu(x + two convolutions of x); a 1 x 1 convolution takes x along where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*_normed(inputs, outputs, 3, stride), nn.ReLU(), *_normed(outputs, outputs, 3))
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*_normed(inputs, outputs, 1, stride))

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.body(images) + self.shortcut(images))
