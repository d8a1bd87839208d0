"""Every argument check and every message to the user: what the argument is, what must hold, what came, the cure."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from numbers import Integral, Real
from types import ModuleType

import torch
from torch import Tensor


def is_tensor(name: str, value: object) -> Tensor:
    """A tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"`{name}` must be a torch.Tensor; got {type(value).__name__}. Convert it with torch.as_tensor({name})."
        )
    return value


def logits(value: object) -> Tensor:
    """A floating point tensor with at least one dimension."""
    tensor = value if isinstance(value, Tensor) else is_tensor("logits", value)
    if not tensor.is_floating_point():
        raise TypeError(
            f"`logits` must be floating point log-odds; got {tensor.dtype}. Labels are no logits; "
            f"scores of another dtype convert with logits.float()."
        )
    if tensor.dim() == 0:
        raise ValueError("`logits` must have at least one dimension, the instances; got a scalar. Use logits[None].")
    return tensor


def per_bag(name: str, value: object, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """One whole number for each bag, int64, from a tensor of any integer dtype that broadcasts or an int."""
    tensor = value if isinstance(value, Tensor) else _as_tensor(name, value, like)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(
            f"`{name}` must be whole numbers of an integer dtype; got {tensor.dtype}. "
            f"Round and convert them first: {name}.round().long()."
        )
    _beside(name, tensor, like)
    return tensor.long() if tensor.shape == shape else _one_for_each(name, tensor.long(), shape)


def _beside(name: str, tensor: Tensor, like: Tensor) -> None:
    if tensor.device != like.device:
        raise ValueError(
            f"`{name}` must be on the device of `logits`, {like.device}; it is on {tensor.device}. "
            f"Move it with {name}.to(logits.device)."
        )


def _one_for_each(name: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    try:
        return tensor.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"`{name}` must hold one number for each bag, shape {tuple(shape)}; got shape {tuple(tensor.shape)}. "
            f"Bags are all dimensions of dense logits but the last, or the gaps between offsets."
        ) from None


def _as_tensor(name: str, value: object, like: Tensor) -> Tensor:
    if not isinstance(value, bool) and isinstance(value, Integral):  # numpy's whole numbers too
        return torch.tensor(int(value), device=like.device)
    return is_tensor(name, value)


def not_both(mask: object, offsets: object) -> None:
    """Dense bags have a mask, ragged ones offsets."""
    if mask is not None and offsets is not None:
        raise ValueError(
            "`mask` and `offsets` must not both be given: a mask goes with dense logits (..., n), offsets with flat "
            "logits (m,). Drop one of them."
        )


def mask(value: object, like: Tensor) -> Tensor:
    """A bool tensor of the logits' shape, or broadcast to it."""
    tensor = is_tensor("mask", value)
    if tensor.dtype != torch.bool:
        raise TypeError(
            f"`mask` must be a bool tensor, True where an instance exists; got {tensor.dtype}. "
            f"Convert with mask.bool()."
        )
    _beside("mask", tensor, like)
    try:
        return tensor.expand(like.shape)
    except RuntimeError:
        raise ValueError(
            f"`mask` must have the shape of `logits`, {tuple(like.shape)}; got {tuple(tensor.shape)}."
        ) from None


def offsets(value: object, like: Tensor) -> Tensor:
    """Offsets of ragged bags, int64 on the CPU, from 0 up to the number of instances."""
    tensor = is_tensor("offsets", value)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"`offsets` must be int64; got {tensor.dtype}. Convert with offsets.long().")
    if like.dim() != 1:
        raise ValueError(
            f"`logits` must be flat, (m,), when `offsets` are given; got shape {tuple(like.shape)}. "
            f"Dense logits (..., n) take no offsets; ragged ones come concatenated: torch.cat(bags)."
        )
    if tensor.dim() != 1 or not len(tensor):
        raise ValueError(
            f"`offsets` must have shape (bags + 1,) with at least one entry; got shape {tuple(tensor.shape)}. "
            f"From sizes: torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])."
        )
    host = tensor.detach().to("cpu", torch.int64)  # the sizes of bags are shapes: the host must know them
    if host[0] != 0 or host[-1] != len(like):
        raise ValueError(
            f"`offsets` must start at 0 and end at the number of logits, {len(like)}; they run from {int(host[0])} to "
            f"{int(host[-1])}. Unlike torch.nn.EmbeddingBag's default, the last offset is always included."
        )
    sizes = host.diff()
    if bool((sizes < 0).any()):
        bag = int((sizes < 0).nonzero()[0])
        raise ValueError(
            f"`offsets` must not decrease; bag {bag} would run from {int(host[bag])} to {int(host[bag + 1])}. "
            f"Sort them, or build them from sizes with cumsum."
        )
    return host


def holds(condition: Tensor) -> bool:
    """Whether a condition on values holds everywhere.

    Values that cannot be read without waiting for another device, or not at all (inside `torch.func.vmap` or a compiled
    graph), are taken on trust.
    """
    if condition.device.type != "cpu" or torch.compiler.is_compiling():
        return True
    try:
        return bool(condition.all())
    except RuntimeError:
        return True


def option(name: str, value: object, allowed: Sequence[str]) -> None:
    """One of a few words."""
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def real_per_bag(name: str, value: object, like: Tensor, shape: tuple[int, ...] | None) -> Tensor:
    """One real number for each bag, float64, from a number or a tensor that broadcasts to the bags."""
    if not isinstance(value, Tensor) and not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number or a torch.Tensor; got {type(value).__name__}.")
    tensor = value if isinstance(value, Tensor) else torch.tensor(float(value), dtype=torch.float64, device=like.device)
    _beside(name, tensor, like)
    return tensor.double() if shape is None else _one_for_each(name, tensor.double(), shape)


def fractions(name: str, value: Tensor) -> Tensor:
    """Numbers from 0 to 1."""
    if not holds((value >= 0) & (value <= 1)):
        worst = float(value.min() if bool((value < 0).any()) else value.max())
        raise ValueError(f"`{name}` must lie between 0 and 1; got {worst:g}. Percentages are divided by 100 first.")
    return value


def bag_labels(value: object, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """One label for each bag, 0 or 1 of any dtype, as bool."""
    tensor = value.long() if isinstance(value, Tensor) and value.dtype == torch.bool else value
    labels = real_per_bag("bag_labels", tensor, like, shape)
    if not holds((labels == 0) | (labels == 1)):
        odd = float(labels[(labels != 0) & (labels != 1)][0])
        raise ValueError(
            f"`bag_labels` must be 0 (no positive in the bag) or 1 (at least one); got {odd:g}. "
            f"Labels of -1 and 1 convert with (labels > 0); proportions go to kofn.losses.llp_loss."
        )
    return labels == 1


def counts_fit(counts: Tensor, sizes: Tensor) -> None:
    """Counts that a bag of that size can have."""
    fits = (counts >= 0) & (counts <= sizes)
    if not holds(fits):
        bag = int((~fits).flatten().nonzero()[0])
        size = int(sizes.expand(fits.shape).flatten()[bag])
        raise ValueError(
            f"`counts` must lie between 0 and the bag's size; bag {bag} has {size} instances and count "
            f"{int(counts.flatten()[bag])}. Check the order of the bags, or that these are counts, not labels."
        )


def whole_counts(exact: Tensor, slack: Tensor) -> None:
    """Proportions that are a whole number of positives."""
    whole = (exact - exact.round()).abs() <= slack
    if not holds(whole):
        bag = int((~whole).flatten().nonzero()[0])
        raise ValueError(
            f"`proportions` must be a whole count of the bag when rounding='error'; bag {bag} would have "
            f"{float(exact.flatten()[bag]):g} positives. Choose rounding='nearest' if they were published with few "
            f"digits, rounding='spread' to share each between its two neighbouring counts."
        )


def law_shape(name: str, value: object, shape: tuple[int, ...], *, ragged: bool) -> Tensor:
    """One entry for every count of every bag, as `log_count_distribution` returns them."""
    tensor = is_tensor(name, value)
    try:
        return tensor.expand(shape)
    except RuntimeError:
        rule = "flat (instances + bags,)" if ragged else "(..., n + 1)"
        raise ValueError(
            f"`{name}` must have an entry for each count, {rule}, here {tuple(shape)}; got {tuple(tensor.shape)}. "
            f"kofn.log_count_distribution returns this shape; counts past a bag's size have -inf."
        ) from None


def normalised(totals: Tensor) -> None:
    """Laws that sum to one; totals are the logs of their sums."""
    right = totals.abs() <= 1e-3
    if not holds(right):
        bag = int((~right).flatten().nonzero()[0])
        raise ValueError(
            f"`log_probs` must be logarithms of probabilities that sum to one; those of bag {bag} sum to "
            f"{float(totals.flatten()[bag].exp()):g}. Take the log of probabilities, or torch.log_softmax of scores."
        )


def noise(value: object) -> None:
    """A law on the real line or a callable."""
    if isinstance(value, torch.distributions.Distribution):
        if value.event_shape:
            raise ValueError(
                f"`noise` must be a law of one number; its event shape is {tuple(value.event_shape)}. "
                f"A noise scale for each bag is a batch shape: Normal(0.0, scales)."
            )
        if value.support is not torch.distributions.constraints.real:
            raise ValueError(
                f"`noise` must be a law on all real numbers, because observed - s may be any of them; "
                f"{type(value).__name__} is not. Pass its log-pmf as a function that is -inf outside its support."
            )
    elif not callable(value):
        raise TypeError(
            f"`noise` must be a torch.distributions law or a function from differences to log-probabilities; "
            f"got {type(value).__name__}. For instance torch.distributions.Laplace(0.0, scale)."
        )


def some_logits(name: str, value: object) -> Tensor:
    """Floating point logits, at least one."""
    tensor = is_tensor(name, value)
    if not tensor.is_floating_point():
        raise TypeError(f"`{name}` must be floating point log-odds; got {tensor.dtype}.")
    if tensor.dim() == 0 or not tensor.numel():
        raise ValueError(
            f"`{name}` must hold at least one instance; got shape {tuple(tensor.shape)}. "
            f"Leave out batches without any, or sample them so that none is empty."
        )
    return tensor


def bag_pairs(value: object, bags: int) -> Tensor:
    """Pairs of bags, (p, 2)."""
    tensor = is_tensor("pairs", value)
    if tensor.dtype != torch.int64 or tensor.dim() != 2 or tensor.shape[1] != 2:
        raise ValueError(
            f"`pairs` must be int64 of shape (pairs, 2), the richer bag first; got {tensor.dtype} of shape "
            f"{tuple(tensor.shape)}. kofn.losses.pair_bags(proportions) makes them."
        )
    if not len(tensor):
        raise ValueError(
            f"`pairs` must hold at least one pair of bags with different proportions; got none from {bags} bags. "
            f"Equal proportions tell the classes apart in no way; put more bags in a batch."
        )
    if not holds((tensor >= 0) & (tensor < bags)):
        raise ValueError(f"`pairs` must index bags 0 to {bags - 1}; got {int(tensor.min())} to {int(tensor.max())}.")
    return tensor


def target(value: object, kind: type) -> None:
    """A statement about a count."""
    if not isinstance(value, kind):
        raise TypeError(
            f"`target` must say something of the count: kofn.Exactly(counts), kofn.AtLeast(1), ...; "
            f"got {type(value).__name__}. Plain counts are kofn.Exactly(counts)."
        )


def prior(prior: float, labeled_fraction: float) -> None:
    """A class prior, and a labelled fraction that it allows."""
    if not 0 <= prior <= 1:
        raise ValueError(f"`prior` must lie between 0 and 1; got {prior:g}.")
    if not 0 <= labeled_fraction <= prior or labeled_fraction == 1:
        raise ValueError(
            f"`labeled_fraction` must lie between 0 and the prior, {prior:g}, and below 1; got {labeled_fraction:g}. "
            f"It is the share of labelled positives in all the data, and those are positives too."
        )


def extra(module: str, name: str) -> ModuleType:
    """A module of an optional dependency."""
    try:
        return import_module(module)
    except ImportError as error:
        package = {"sklearn": "scikit-learn"}.get(module.split(".")[0], module.split(".")[0])
        raise ImportError(f"This needs {package}, which is not installed: pip install kofn[{name}]") from error
