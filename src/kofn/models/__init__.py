"""A perceptron, one logit an instance, and attention pooling, one logit a bag.

A perceptron is a `torch.nn.Sequential` whose last layer is a `Logit`, so that ``network[:-1]`` is its encoder: what
attention pooling stands on. It does not end in a sigmoid; the losses take logits.
"""

from kofn.models._attention import AttentionMIL, AttentionPooling, GatedAttentionPooling
from kofn.models._networks import Logit, mlp, start_at_rate

__all__ = [
    "AttentionMIL",
    "AttentionPooling",
    "GatedAttentionPooling",
    "Logit",
    "mlp",
    "start_at_rate",
]
