"""The networks of the paper's tables, one logit an instance, and attention pooling, one logit a bag.

Every instance network is a `torch.nn.Sequential` whose last layer is a `Logit`, so that ``network[:-1]`` is its
encoder: what an attention baseline stands on. None of them ends in a sigmoid; the losses take logits.
"""

from kofn.models._attention import AttentionMIL, AttentionPooling, GatedAttentionPooling
from kofn.models._networks import (
    Logit,
    adult_mlp,
    cifar_resnet18,
    colon_convnet,
    magic_mlp,
    mlp,
    mnist_convnet,
    pu_mnist_mlp,
    start_at_rate,
)
from kofn.models._registry import build

__all__ = [
    "AttentionMIL",
    "AttentionPooling",
    "GatedAttentionPooling",
    "Logit",
    "adult_mlp",
    "build",
    "cifar_resnet18",
    "colon_convnet",
    "magic_mlp",
    "mlp",
    "mnist_convnet",
    "pu_mnist_mlp",
    "start_at_rate",
]
