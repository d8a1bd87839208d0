"""A multi-layer perceptron with one logit an instance, or one for each class, and where it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard, cast

import torch
from torch import Tensor, nn


class Logit(nn.Linear):
    """A linear layer with one output and no dimension for it: (..., features) to logits (...).

    Args:
        features: of an instance.
        classes: their number C, for a logit of each: (..., features) to (..., C); None for the log-odds of one.

    Examples:
        >>> import torch
        >>> from kofn import learners
        >>> learners.Logit(3)(torch.zeros(5, 3)).shape, learners.Logit(3, 10)(torch.zeros(5, 3)).shape
        (torch.Size([5]), torch.Size([5, 10]))
    """

    def __init__(self, features: int, classes: int | None = None) -> None:
        super().__init__(features, 1 if classes is None else classes)
        self.classes = classes

    def forward(self, features: Tensor) -> Tensor:
        logits = super().forward(features)
        return logits.squeeze(-1) if self.classes is None else logits


class TableLinear(nn.Module):
    """A linear layer of the rows of a table with many categories, each of which has a vector of weights (an embedding).

    It is an `nn.Linear` of numbers beside a column of 0 and 1 for each category, without these columns: (..., numbers +
    k) to (..., outputs), where the last k inputs of a row are the places of its k categories, `categories` for none.

    Args:
        numbers: of columns that are numbers.
        categories: of all columns of categories together.
        outputs: of the layer.

    Examples:
        >>> import torch
        >>> from kofn.learners._perceptron import TableLinear
        >>> layer = TableLinear(1, 3, 2)
        >>> rows = torch.tensor([[0.5, 2.0], [0.5, 3.0]])  # the third category, and none
        >>> bool(torch.allclose(layer(rows)[0] - layer(rows)[1], layer.embedding[2]))
        True
    """

    def __init__(self, numbers: int, categories: int, outputs: int) -> None:
        super().__init__()
        self.numbers, self.categories = numbers, categories
        of_all = nn.Linear(numbers + categories, outputs)  # so that weights begin as those of such a layer
        self.weight = nn.Parameter(of_all.weight[:, :numbers].detach().clone())
        self.embedding = nn.Parameter(of_all.weight[:, numbers:].detach().T.clone())
        self.bias = nn.Parameter(of_all.bias.detach().clone())

    def forward(self, rows: Tensor) -> Tensor:
        of_numbers = nn.functional.linear(rows[..., : self.numbers], self.weight, self.bias)
        table = torch.cat([self.embedding, self.embedding.new_zeros(1, self.embedding.shape[1])])
        places = rows[..., self.numbers :].long()
        of_categories = nn.functional.embedding_bag(places.flatten(end_dim=-2), table, mode="sum")
        return of_numbers + of_categories.reshape(of_numbers.shape)


def mlp(inputs: int, hidden: Sequence[int] = (), *, dropout: float = 0.0, classes: int | None = None) -> nn.Sequential:
    """A multi-layer perceptron with one logit: for each hidden width a linear layer, a ReLU and dropout.

    Args:
        inputs: number of features of an instance.
        hidden: widths of the hidden layers; none of them makes a linear model.
        dropout: probability to drop a hidden unit, in training mode only.
        classes: their number C, for a logit of each; None for the log-odds of one.

    Returns:
        A network from features (..., inputs) to logits (...), or (..., C).

    Examples:
        >>> import torch
        >>> from kofn import learners
        >>> learners.mlp(10, (32, 8))(torch.zeros(4, 10)).shape
        torch.Size([4])
    """
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        inputs = width
    return nn.Sequential(*layers, Logit(inputs, classes))


def ends_in_logit(network: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a network is layers in a row, of which the last is a `Logit`."""
    return isinstance(network, nn.Sequential) and len(network) > 0 and isinstance(network[-1], Logit)


def ends_in_bias(network: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a network is layers in a row, of which the last is a `Logit` or a linear layer of one output."""
    if ends_in_logit(network):
        return True
    last = network[-1] if isinstance(network, nn.Sequential) and len(network) > 0 else None
    return isinstance(last, nn.Linear) and last.out_features == 1 and last.bias is not None


def start_at_rate(network: nn.Sequential, rate: float | Tensor) -> nn.Sequential:
    """Let a new network begin at a base rate: its last bias becomes logit(rate), for several classes log(rate).

    A new network says about one half of every instance, so that a bag of n has a positive one with probability
    1 - 2^-n: at n = 100 nothing is left of the gradient of a positive bag, and training first spends its steps on
    forgetting that. If a share q of the bags is positive, begin at

        rate = 1 - (1 - q)^(1 / n),   for which P(S >= 1) = 1 - (1 - rate)^n = q.

    Args:
        network: ends in a `Logit`, as every network of this module does, or in an `nn.Linear(..., 1)`; changed
            in place.
        rate: the probability of an instance to be positive, or (C,) those of the classes, above 0 and below 1.

    Returns:
        The same network.

    Raises:
        TypeError: the last layer is neither.
        ValueError: a rate that is not between 0 and 1; another number of rates than the network has outputs.

    Examples:
        >>> import torch
        >>> from kofn import learners
        >>> network = learners.start_at_rate(learners.mlp(3, (8,)), 1 - 0.5 ** (1 / 100))
        >>> float(network[-1].bias.detach().sigmoid()).__round__(4)
        0.0069
    """
    if not ends_in_bias(network):
        raise TypeError(
            f"`network` must be a Sequential that ends in a Logit, such as learners.mlp(10), or in an nn.Linear(..., "
            f"1); got {type(network).__name__}. Of another network set the bias of the last layer to logit(rate)."
        )
    rates = torch.as_tensor(rate, dtype=torch.float64)
    if not bool(((rates > 0) & (rates < 1)).all()):
        raise ValueError(f"`rate` must be above 0 and below 1; got {rate}. It is the probability of one instance.")
    last = cast(nn.Linear, network[-1])
    classes = last.classes if isinstance(last, Logit) else None
    if rates.shape != (() if classes is None else (classes,)):
        outputs = "one logit" if classes is None else f"{classes} classes"
        raise ValueError(f"`rate` must be one for each output; the network has {outputs} and rates {rate}.")
    with torch.no_grad():
        last.bias.copy_(rates.log() if rates.dim() else rates.logit().expand_as(last.bias))
    return network
