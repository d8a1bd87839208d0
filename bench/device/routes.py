"""The ways in which kofn computes a count: by which engine, on which device, eager or compiled."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

import kofn
from bench.fuzz.checks import Engine, functions_of, installed


class Answer(NamedTuple):
    """The log-probabilities of counts and their gradient by the logits."""

    value: Tensor
    gradient: Tensor


@dataclass(frozen=True)
class Route:
    """One way.

    Attributes:
        engine: which implementation.
        device: where the logits are.
        compiled: by torch.compile, in one graph.
        interpreted: in Triton's interpreter, whose time says nothing.
    """

    engine: Engine
    device: str
    compiled: bool = False
    interpreted: bool = False

    def __str__(self) -> str:
        how = ", compiled" if self.compiled else ", interpreted" if self.interpreted else ""
        return f"{self.engine}{how} on {self.device}"

    def prepare(self, logits: Tensor, counts: Tensor, offsets: Tensor | None) -> Callable[[], Answer]:
        """A run of the value and gradient of some bags, which are copied to the device before."""
        x = logits.detach().to(self.device).requires_grad_()
        wanted = counts.to(self.device)
        loss = functions_of(self.engine)[0]
        loss = torch.compile(loss, fullgraph=True) if self.compiled else loss

        def run() -> Answer:
            with kofn.counts.use("torch" if self.engine == "triton" else self.engine):
                value = loss(x, wanted, offsets=offsets)
                (gradient,) = torch.autograd.grad(value.sum(), x)
            return Answer(value.detach(), gradient)

        return run

    def clock(self) -> float:
        """Seconds, when all that was asked of the device is done."""
        synchronise(self.device)
        return time.perf_counter()


def routes(device: str) -> list[Route]:
    """Every way that this machine has, the core on the CPU first; of a device that is not the CPU also torch there."""
    found = [Route(engine, "cpu") for engine in installed() if engine == "native" or device == "cpu"]
    if device != "cpu":
        found.append(Route("torch", device))
    if device != "mps":  # where float64 is missing, the engine goes through the CPU: there is nothing to fuse
        found.append(Route("torch", device, compiled=True))
    if has_triton() and device in ("cuda", "cpu"):
        found.append(Route("triton", device, interpreted=device == "cpu"))
    return found


def has_triton() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def require_device(device: str) -> None:
    """Require a device that there is, and for Triton on the CPU its interpreter, before anything imports Triton."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there[device]:
        names = ", ".join(name for name, is_there in there.items() if is_there)
        raise SystemExit(f"--device must be one that there is: {names}; got {device}.")
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"


def synchronise(device: str) -> None:
    """Wait until a device has done what it was asked."""
    if device == "cuda":
        torch.cuda.synchronize()
    elif device == "mps":
        torch.mps.synchronize()


def describe(device: str) -> str:
    """The device, and what drives it."""
    if device != "cuda":
        return f"device {device}"
    facts = torch.cuda.get_device_properties(0)
    memory = facts.total_memory / 2**30
    return f"{facts.name}, sm_{facts.major}{facts.minor}, {memory:.0f} GiB, CUDA {torch.version.cuda}"
