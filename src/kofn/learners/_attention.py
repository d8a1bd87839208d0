"""Attention pooling: one logit for each bag, from the embeddings of its instances."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kofn import _require
from kofn.counts._layout import lay_out
from kofn.learners._perceptron import Logit


class AttentionPooling(nn.Module):
    """The logit of a bag from the attention-weighted mean of its instances' embeddings.

        a_k = softmax_k(w^T tanh(V h_k)),    z = sum_k a_k h_k,    bag logit = u^T z + c,

    the softmax over the instances of each bag, all bags at once. V and w have no bias, as in the article.

    Args:
        features: length d of an embedding.
        hidden: rows of V.

    Shapes:
        embeddings (..., n, d) with an optional bool `mask` (..., n), True = exists: bag logits (...).
        embeddings (m, d) with int64 `offsets` (b + 1,), bag j being rows offsets[j] to offsets[j + 1]: (b,).
        A masked embedding is an absent one, whatever it holds. A bag without instances has z = 0: its logit is c.

    Raises:
        TypeError: tensors of the wrong kind.
        ValueError: shapes that do not fit, both `mask` and `offsets`, offsets that do not run from 0 to m.

    Examples:
        >>> import torch
        >>> from kofn import learners
        >>> pooling = learners.AttentionPooling(4)
        >>> pooling(torch.randn(7, 4), offsets=torch.tensor([0, 5, 7])).shape
        torch.Size([2])
        >>> pooling.attention(torch.ones(5, 4), offsets=torch.tensor([0, 4, 5]))  # alike in a bag: equal weights
        tensor([0.2500, 0.2500, 0.2500, 0.2500, 1.0000], grad_fn=<DivBackward0>)

    Reference:
        Ilse, Tomczak, Welling. Attention-based Deep Multiple Instance Learning. ICML 2018.
    """

    def __init__(self, features: int, *, hidden: int = 128) -> None:
        super().__init__()
        self.features = features
        self.project = nn.Linear(features, hidden, bias=False)  # V
        self.score = nn.Linear(hidden, 1, bias=False)  # w
        self.classify = Logit(features)  # u, c

    def forward(self, embeddings: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        """Bag logits, (...) or (b,)."""
        self._check(embeddings, offsets)
        flat, sizes = _ragged(embeddings, embeddings.dim() - 1, mask, offsets)
        weighted = self._weights(flat, sizes).unsqueeze(-1) * flat
        z = weighted.new_zeros(sizes.numel(), self.features).index_add(0, _bag(sizes), weighted)
        logits: Tensor = self.classify(z)
        return logits.view(sizes.shape)

    def attention(self, embeddings: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        """The weights a_k, (..., n) or (m,): they sum to one over each bag that is not empty, 0 where masked."""
        self._check(embeddings, offsets)
        flat, sizes = _ragged(embeddings, embeddings.dim() - 1, mask, offsets)
        weights = self._weights(flat, sizes)
        if offsets is not None:
            return weights
        if mask is None:
            return weights.view(embeddings.shape[:-1])
        return weights.new_zeros(embeddings.shape[:-1]).masked_scatter(mask.expand(embeddings.shape[:-1]), weights)

    def _hidden(self, embeddings: Tensor) -> Tensor:
        """(m, hidden), what the scores are linear in."""
        return torch.tanh(self.project(embeddings))

    def _weights(self, flat: Tensor, sizes: Tensor) -> Tensor:
        """A softmax over each bag: less its largest score, so that no exponential overflows."""
        scores: Tensor = self.score(self._hidden(flat)).squeeze(-1)
        bag = _bag(sizes)
        top = scores.new_full((sizes.numel(),), -torch.inf).scatter_reduce(0, bag, scores.detach(), "amax")
        powers = (scores - top[bag]).exp()
        return powers / powers.new_zeros(sizes.numel()).index_add(0, bag, powers)[bag]

    def _check(self, embeddings: Tensor, offsets: Tensor | None) -> None:
        tensor = _require.tensor("embeddings", embeddings)
        if tensor.dim() < 2 or tensor.shape[-1] != self.features or (offsets is not None and tensor.dim() != 2):
            wanted = f"(..., n, {self.features})" if offsets is None else f"(m, {self.features}) with `offsets`"
            raise ValueError(
                f"`embeddings` must have shape {wanted}; got {tuple(tensor.shape)}. "
                f"The last dimension is the `features` that the pooling was made for."
            )


class GatedAttentionPooling(AttentionPooling):
    """Attention pooling whose hidden units are switched by a gate of their own.

        a_k = softmax_k(w^T (tanh(V h_k) * sigmoid(U h_k))),    z = sum_k a_k h_k,    bag logit = u^T z + c.

    Arguments, shapes and errors are those of `AttentionPooling`; U has the shape of V and no bias.

    Examples:
        >>> import torch
        >>> from kofn import learners
        >>> learners.GatedAttentionPooling(4)(torch.randn(2, 3, 4)).shape
        torch.Size([2])
    """

    def __init__(self, features: int, *, hidden: int = 128) -> None:
        super().__init__(features, hidden=hidden)
        self.gate = nn.Linear(features, hidden, bias=False)  # U

    def _hidden(self, embeddings: Tensor) -> Tensor:
        return super()._hidden(embeddings) * torch.sigmoid(self.gate(embeddings))


class AttentionMIL(nn.Module):
    """An encoder of instances and a pooling over bags: the paper's attention baselines from instances to bag logits.

    Args:
        encoder: a module from instances (m, ...) to embeddings (m, d), for one an instance network less its last layer.
        pooling: an `AttentionPooling(d)` or `GatedAttentionPooling(d)`.

    Shapes:
        instances (m, ...) with `offsets` (b + 1,), or (b, n, ...) with an optional bool `mask` (b, n): logits (b,).
        The encoder never sees a masked instance.

    Examples:
        >>> import torch
        >>> from kofn import learners
        >>> model = learners.AttentionMIL(learners.mlp(3, (16,))[:-1], learners.GatedAttentionPooling(16))
        >>> model(torch.zeros(5, 3), offsets=torch.tensor([0, 2, 5])).shape
        torch.Size([2])
    """

    def __init__(self, encoder: nn.Module, pooling: AttentionPooling) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling

    def forward(self, instances: Tensor, *, mask: Tensor | None = None, offsets: Tensor | None = None) -> Tensor:
        """Bag logits (b,)."""
        if _require.tensor("instances", instances).dim() < (3 if offsets is None else 2):
            wanted = "(b, n, ...)" if offsets is None else "(m, ...) with `offsets`"
            raise ValueError(
                f"`instances` must have shape {wanted}; got {tuple(instances.shape)}. One bag: instances[None]."
            )
        flat, sizes = _ragged(instances, 2, mask, offsets)
        ends = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        logits: Tensor = self.pooling(self.encoder(flat), offsets=ends)
        return logits


def _ragged(values: Tensor, lead: int, mask: Tensor | None, offsets: Tensor | None) -> tuple[Tensor, Tensor]:
    """Instances (m, ...) one bag after the other and the sizes of the bags, from either way to lay them out."""
    shape = values.shape[: 1 if offsets is not None else lead]
    sizes = lay_out(shape, values.device, mask=mask, offsets=offsets).sizes
    if offsets is not None:
        return values, sizes
    return values.flatten(0, lead - 1) if mask is None else values[mask.expand(shape)], sizes


def _bag(sizes: Tensor) -> Tensor:
    """The bag of each instance, (m,)."""
    return torch.arange(sizes.numel(), device=sizes.device).repeat_interleave(sizes.flatten())
