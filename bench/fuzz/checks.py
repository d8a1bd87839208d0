"""Every answer of the engines about a chunk of bags, beside the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

import kofn
from bench.fuzz import special_bags
from bench.fuzz.awkward_bags import Array, Batch, batches
from bench.fuzz.wide_oracle import Truth, truths

Engine = Literal["native", "torch", "triton"]
CHUNK = 500  # bags that are drawn from one seed
# What is promised: of logarithms relative to max(1, |log p|), of gradients and posteriors absolute.
BOUNDS = {
    "log_prob": 1e-11,
    "gradient": 2e-11,
    "log_between": 1e-11,
    "between_gradient": 2e-11,
    "log_law": 1e-11,
    "posteriors": 2e-11,
}


@dataclass(frozen=True)
class Failure:
    """The worst of the wrong answers about one bag."""

    place: str  # of its batch
    bag: int
    size: int
    layout: str
    dtype: str
    engine: str
    quantity: str
    position: int  # among the answers about this bag
    found: float
    expected: float
    error: float

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in asdict(self).items()).removeprefix("place ")


@dataclass
class Tally:
    """What was asked, and how far the answers were off."""

    facts: Counter[str] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)  # compared, by "dtype, engine"
    wrong: Counter[str] = field(default_factory=Counter)  # of those, beyond the bound
    worst: dict[str, float] = field(default_factory=dict)  # error in float64, by "quantity, engine, layout"
    deepest: float = 0.0  # log-probability
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.facts.update(other.facts)
        self.numbers.update(other.numbers)
        self.wrong.update(other.wrong)
        for key, error in other.worst.items():
            self.worst[key] = max(error, self.worst.get(key, 0.0))
        self.deepest = min(self.deepest, other.deepest)
        self.failures += other.failures


def installed() -> tuple[Engine, ...]:
    """The core and torch, or only torch where the C++ core was not built."""
    return ("native", "torch") if kofn.counts.backend() == "native" else ("torch",)


def functions_of(engine: Engine) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """What computes one count and an interval: the Triton kernel has functions of its own, all else is torch's."""
    if engine != "triton":
        return kofn.log_count_prob, kofn.log_count_between
    from kofn.contrib import triton

    return triton.log_count_prob, triton.log_count_between


def check_chunk(
    chunk: int, *, bags: int, seed: int, engines: Sequence[Engine] | None = None, device: str = "cpu"
) -> Tally:
    """Draw one chunk of so many bags in all, and compare every answer about it with the truth."""
    drawn = batches(seed, chunk, min(CHUNK, bags - chunk * CHUNK))
    if device == "mps":  # which has no float64
        drawn = [batch for batch in drawn if batch.dtype != "float64"]
    counts, low, high = (np.concatenate([getattr(b, name) for b in drawn]) for name in ("counts", "low", "high"))
    known = iter(truths([bag for batch in drawn for bag in batch.bags], counts, low, high))
    tally = Tally()
    for batch in drawn:
        truth = [next(known) for _ in batch.bags]
        tally.facts.update(dict.fromkeys(("bags", batch.layout, batch.dtype), len(truth)))
        tally.facts["instances"] += int(batch.sizes.sum())
        tally.facts["impossible counts"] += sum(bool(bag.log_prob[0] == -np.inf) for bag in truth)
        tally.deepest = min(tally.deepest, *(float(bag.log_law[bag.log_law > -np.inf].min()) for bag in truth))
        for engine in engines or installed():
            for quantity, found in ask(batch, engine, device)._asdict().items():
                compare(tally, batch, truth, found.reshape(-1), engine, quantity)
    if device == "cpu":
        for engine in engines or installed():
            if engine != "triton":
                check_special_bags(tally, engine, seed, chunk)
    return tally


def check_special_bags(tally: Tally, engine: Literal["native", "torch"], seed: int, chunk: int) -> None:
    """Note the errors about the special bags of a chunk (`special_bags`)."""
    for number, (size, dtype, answers) in enumerate(special_bags.cases(seed, chunk)):
        for quantity, expected, question in answers:
            with kofn.counts.use(engine):
                found = special_bags.found_of(question, expected)
            tally.facts[f"{quantity}, {engine}"] += expected.size
            if found is None:
                tally.facts[f"{quantity}, {engine}, refused"] += 1
                continue
            errors = distance(found, expected, dtype, relative="log" in quantity.split(", ")[1])
            key, worst = f"{quantity}, {engine}", float(errors.max())
            if dtype == "float64":
                tally.worst[key] = max(tally.worst.get(key, 0.0), worst)
            if worst > special_bags.BOUNDS[quantity]:
                at = int(errors.argmax())
                numbers = float(found.flat[at]), float(expected.flat[at]), worst
                place = f"seed {seed}, chunk {chunk}, special bag"
                tally.failures.append(Failure(place, number, size, "dense", dtype, engine, quantity, at, *numbers))


def ask(batch: Batch, engine: Engine, device: str = "cpu") -> Truth:
    """The answers of an engine on a device, laid out as the batch is."""
    where = {name: tensor.to(device) for name, tensor in batch.where().items()}
    counts, low, high = (torch.from_numpy(v.copy()).to(device) for v in (batch.counts, batch.low, batch.high))
    log_prob, log_between = functions_of(engine)
    with kofn.counts.use("torch" if engine == "triton" else engine):
        x = batch.logits().to(device).requires_grad_()
        value = log_prob(x, counts, **where)
        between = log_between(x, low, high, **where)
        gradient, between_gradient = (torch.autograd.grad(v, x, torch.ones_like(v))[0] for v in (value, between))
        x = x.detach()
        pmf, posteriors = kofn.log_count_distribution(x, **where), kofn.count_posteriors(x, counts, **where)
    answers = (value, gradient, between, between_gradient, pmf, posteriors)
    for answer in answers:
        if answer.dtype != x.dtype:
            raise TypeError(f"{batch.place}: an answer about {x.dtype} came in {answer.dtype}.")
    return Truth(*(answer.detach().cpu().double().numpy() for answer in answers))


def compare(tally: Tally, batch: Batch, truth: list[Truth], found: Array, engine: Engine, quantity: str) -> None:
    """Note the errors of one kind of answer about a batch."""
    expected, bag_of = laid_out(batch, truth, quantity)
    errors = distance(found, expected, batch.dtype, relative=quantity.startswith("log"))
    if quantity.endswith("gradient"):  # of what cannot be: not nearly but exactly zero
        value = "log_prob" if quantity == "gradient" else "log_between"
        impossible = np.array([getattr(bag, value)[0] == -np.inf for bag in truth])
        errors[impossible[bag_of] & (found != 0)] = np.inf
    if quantity == "posteriors":  # probabilities, to the last digit
        errors[(found < 0) | (found > 1)] = np.inf
    beyond = errors > BOUNDS[quantity]
    tally.numbers[f"{batch.dtype}, {engine}"] += len(errors)
    tally.wrong[f"{batch.dtype}, {engine}"] += int(beyond.sum())
    if batch.dtype == "float64":
        key = f"{quantity}, {engine}, {batch.layout}"
        tally.worst[key] = max(tally.worst.get(key, 0.0), float(errors.max(initial=0.0)))
    for bag in np.unique(bag_of[beyond]).tolist():
        here = np.flatnonzero(bag_of == bag)
        position = int(errors[here].argmax())
        numbers = (float(values[here[position]]) for values in (found, expected, errors))
        of_bag = (batch.place, bag, len(batch.bags[bag]), batch.layout, batch.dtype)
        tally.failures.append(Failure(*of_bag, engine, quantity, position, *numbers))


def laid_out(batch: Batch, truth: list[Truth], quantity: str) -> tuple[Array, Array]:
    """The truth as an engine has to lay it out, flat, and the bag of each number.

    Where a mask says that there is nothing, gradients and posteriors are 0 and counts impossible.
    """
    parts = [getattr(bag, quantity) for bag in truth]
    values = np.concatenate(parts).astype(np.float64)
    bags = np.arange(len(parts))
    if batch.mask is None or quantity in ("log_prob", "log_between"):
        return values, np.repeat(bags, [len(part) for part in parts])
    mask = batch.mask.numpy()
    if quantity == "log_law":
        mask = np.arange(mask.shape[1] + 1) <= mask.sum(1, keepdims=True)
    expected = np.full(mask.shape, -np.inf if quantity == "log_law" else 0.0)
    expected[mask] = values
    return expected.reshape(-1), np.repeat(bags, mask.shape[1])


def distance(found: Array, expected: Array, dtype: str, *, relative: bool) -> Array:
    """Errors; what a dtype of fewer digits cannot tell apart, one unit in its last place, is none."""
    with np.errstate(invalid="ignore"):
        errors = np.abs(found - expected)
    errors[found == expected] = 0
    if dtype != "float64":
        limits = torch.finfo(getattr(torch, dtype))
        size = np.where(np.isfinite(expected), np.abs(expected), 0)
        unit = np.exp2(np.floor(np.log2(np.maximum(size, limits.tiny)))) * limits.eps
        errors = np.maximum(errors - unit, 0)
        errors[(found == np.copysign(np.inf, expected)) & (size >= limits.max)] = 0  # too large for the dtype
    errors = np.where(np.isnan(errors), np.inf, errors)
    return errors / np.maximum(1, np.abs(np.where(np.isfinite(expected), expected, 1))) if relative else errors
