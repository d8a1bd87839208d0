"""The networks of the paper's image tables, one logit an instance; the recipes name them.

Each is a `torch.nn.Sequential` whose last layer is a `Logit`, so that ``network[:-1]`` is its encoder: what attention
pooling stands on. The networks for Adult and MAGIC are plain: the recipes give the widths of their hidden layers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from kofn.learners import Logit, mlp


def pu_mnist_mlp() -> nn.Sequential:
    """The paper's network for positive-unlabelled MNIST, 5000-5000-50-1 on flat images: (..., 784) to (...).

    Examples:
        >>> import torch
        >>> pu_mnist_mlp()(torch.zeros(5, 784)).shape
        torch.Size([5])
    """
    return mlp(784, (5000, 5000, 50))


def mnist_convnet() -> nn.Sequential:
    """The paper's network for bags of MNIST digits: (m, 1, 28, 28) to (m,).

    conv(5)-20, maxpool(2), ReLU, conv(5)-50, maxpool(2), ReLU, fc-500, ReLU, fc-1. ``mnist_convnet()[:-1]`` gives the
    embeddings (m, 500) of the attention baselines.

    Examples:
        >>> import torch
        >>> mnist_convnet()(torch.zeros(3, 1, 28, 28)).shape
        torch.Size([3])
    """
    # 28 - 4 = 24, pooled 12, 12 - 4 = 8, pooled 4
    return channels_last(*_convolutions(1, (20, 5), (50, 5)), *mlp(50 * 4 * 4, (500,)))


def colon_convnet() -> nn.Sequential:
    """The paper's network for nuclei of colon tissue, patches of 27 x 27: (m, 3, 27, 27) to (m,).

    conv(4)-36, maxpool(2), ReLU, conv(3)-48, maxpool(2), ReLU, twice fc-512, ReLU and dropout, fc-1. The paper's table
    gives no rate of dropout, and two outputs with a log-sigmoid: the rate is 0.5 as in the code that it builds on
    (utayao/Atten_Deep_MIL), the output is one logit, which is what its loss takes. ``colon_convnet()[:-1]`` gives the
    embeddings (m, 512) of the attention baselines.

    Examples:
        >>> import torch
        >>> colon_convnet()(torch.zeros(3, 3, 27, 27)).shape
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
        >>> cifar_resnet18().eval()(torch.zeros(2, 3, 32, 32)).shape
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


def cifar_resnet8() -> nn.Sequential:
    """A ResNet that a processor can train, in place of the ResNet-18: (m, 3, 32, 32) to (m,).

    As `cifar_resnet18`, with a stem of 24 channels and three residual blocks of 48, 96 and 192, each halving the image:
    seven convolutions in a row and the logit, a twentieth of the work.

    Examples:
        >>> import torch
        >>> cifar_resnet8().eval()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2])
    """
    blocks = [_Residual(inputs, 2 * inputs, 2) for inputs in (24, 48, 96)]
    return channels_last(*_normed(3, 24, 3), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(-3), Logit(192))


class CropAndFlip(nn.Module):
    """In training mode each image is moved by up to so many pixels either way, and mirrored half of the time.

    Examples:
        >>> import torch
        >>> images = torch.rand(5, 3, 32, 32)
        >>> CropAndFlip(4)(images).shape, torch.equal(CropAndFlip(4).eval()(images), images)
        (torch.Size([5, 3, 32, 32]), True)
    """

    def __init__(self, pixels: int) -> None:
        super().__init__()
        self.pixels = pixels

    def forward(self, images: Tensor) -> Tensor:
        """(m, c, height, width) to the same shape; what comes in from beyond the edge is 0."""
        if not self.training:
            return images
        m, (height, width) = len(images), images.shape[-2:]
        padded = nn.functional.pad(images, (self.pixels,) * 4)
        down, right = torch.randint(2 * self.pixels + 1, (2, m, 1))
        columns = torch.where(torch.rand(m, 1) < 0.5, torch.arange(width), torch.arange(width - 1, -1, -1)) + right
        rows = torch.arange(height) + down
        moved = padded[torch.arange(m)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return moved.permute(0, 3, 1, 2)  # an image's pixels are indexed first, so channels come last in memory


def augmented(name: str, pixels: int) -> nn.Sequential:
    """A new network that sees its training images moved and mirrored."""
    return nn.Sequential(CropAndFlip(pixels), *NETWORKS[name]().children())


def channels_last(*layers: nn.Module) -> nn.Sequential:
    """The layers in a row, the channels of a pixel side by side in memory: a step is up to twice as fast."""
    network = nn.Sequential(*layers)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # in place; torch's stub lacks it
    return network


def _convolutions(inputs: int, *layers: tuple[int, int]) -> list[nn.Module]:
    """For each (channels, kernel) a convolution without padding, halving, ReLU; at last all in one row.

    ReLU and maximum commute, and after halving ReLU has a quarter of the work.
    """
    modules: list[nn.Module] = []
    for channels, kernel in layers:
        modules += [nn.Conv2d(inputs, channels, kernel), nn.MaxPool2d(2), nn.ReLU()]
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


NETWORKS: dict[str, Callable[[], nn.Sequential]] = {
    "pu_mnist_mlp": pu_mnist_mlp,
    "mnist_convnet": mnist_convnet,
    "colon_convnet": colon_convnet,
    "cifar_resnet18": cifar_resnet18,
    "cifar_resnet8": cifar_resnet8,
}
