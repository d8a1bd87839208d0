"""Streams of random numbers: of some integers, and of a fit, for layers that know only torch's global generators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import numpy as np
import torch
from torch import Tensor

_LOCK = RLock()  # one fit at a time has its stream in the place of the global one


class RandomStream:
    """The random numbers of one fit: dropout and new weights draw from it, and nobody else does.

    Layers such as `torch.nn.Dropout` draw from torch's global generators. While a network runs, this stream is put in
    their place, and afterwards they are as they were: a fit leaves no trace in them, and two fits in two threads draw
    what they would have drawn one after the other.

    Examples:
        >>> import torch
        >>> stream = RandomStream(torch.device("cpu"))
        >>> stream.seed(0)
        >>> before = torch.get_rng_state()
        >>> with stream.lent():
        ...     _ = torch.rand(3)
        >>> bool((torch.get_rng_state() == before).all())
        True
    """

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._device = device
        self._states: tuple[Tensor, ...] = ()

    def seed(self, *key: int) -> None:
        """Restart the stream at a state that these integers determine."""
        seed = generator_of(*key).initial_seed()
        generators = [torch.Generator(), *([torch.Generator(self._device)] if self._on_gpu else [])]
        self._states = tuple(generator.manual_seed(seed).get_state() for generator in generators)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Put the stream in the place of torch's global generators."""
        with _LOCK:
            before = self._global_states()
            self._set(self._states)
            try:
                yield
            finally:
                self._states = self._global_states()
                self._set(before)

    def _global_states(self) -> tuple[Tensor, ...]:
        states = (torch.get_rng_state(),)
        return (*states, torch.cuda.get_rng_state(self._device)) if self._on_gpu else states

    def _set(self, states: tuple[Tensor, ...]) -> None:
        torch.set_rng_state(states[0])
        if self._on_gpu:
            torch.cuda.set_rng_state(states[1], self._device)


def generator_of(*key: int) -> torch.Generator:
    """A generator whose stream is determined by some integers, independent of that of any others."""
    state = np.random.SeedSequence(list(key)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
