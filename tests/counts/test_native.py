"""The C++ core itself: every instruction set, threads, forked workers, how it is chosen, and life without it."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from bag_strategies import adversarial_count, adversarial_logits
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import kofn
from kofn.counts import _native

ROOT = Path(__file__).parents[2]
needs_core = pytest.mark.skipif(not _native.available, reason="the C++ core is not built: install with a C++ compiler")


@pytest.fixture(scope="module", autouse=True)
def backend() -> str:
    """These tests choose for themselves."""
    return kofn.counts.backend()


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def ragged_bags(seed: int, *, bags: int = 400, largest: int = 300) -> tuple[Tensor, Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(0, math.log(largest), bags)).astype(int)
    logits = [adversarial_logits(rng, n) for n in sizes]
    counts = [adversarial_count(rng, bag) for bag in logits]
    offsets = torch.tensor([0, *np.cumsum(sizes)])
    return torch.from_numpy(np.concatenate(logits)), torch.tensor(counts), offsets


def everything(logits: Tensor, counts: Tensor, offsets: Tensor) -> list[Tensor]:
    """Values and gradients of all four functions."""
    x = logits.clone().requires_grad_()
    one = kofn.log_count_prob(x, counts, offsets=offsets)
    between = kofn.log_count_between(x, counts - 2, counts + 3, offsets=offsets)
    law = kofn.log_count_distribution(x, offsets=offsets)
    weights = torch.linspace(0, 1, len(law), dtype=torch.float64).cos()
    return [
        one.detach(),
        between.detach(),
        law.detach(),
        kofn.count_posteriors(logits, counts, offsets=offsets),
        *torch.autograd.grad(one.sum(), x),
        *torch.autograd.grad(between.sum(), x),
        *torch.autograd.grad((law * weights).sum(), x),
    ]


def assert_alike(found: list[Tensor], expected: list[Tensor]) -> None:
    for a, b, tolerance in zip(found, expected, [1e-12, 1e-12, 1e-11, 1e-11, 1e-11, 1e-11, 1e-9], strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@needs_core
@pytest.mark.parametrize("level", _native.levels())
@pytest.mark.parametrize("seed", range(3))
def test_every_instruction_set_agrees_with_torch(level: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "level", level)
    bags = ragged_bags(seed)
    with kofn.counts.use("native"):
        found = everything(*bags)
    with kofn.counts.use("torch"):
        assert_alike(found, everything(*bags))


@needs_core
def test_an_instruction_set_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "level", 1 << 10)
    with kofn.counts.use("native"), pytest.raises(RuntimeError, match="KOFN_LEVEL=1024"):
        kofn.log_count_prob(torch.zeros(3), 1)


@needs_core
def test_strided_expanded_and_scalar_arguments() -> None:
    g = torch.Generator().manual_seed(0)
    wide = torch.randn(6, 4, 10, generator=g, dtype=torch.float64)
    counts = torch.randint(0, 5, (12,), generator=g)
    for logits, count in (
        (wide.transpose(0, 2), torch.tensor([[1], [2]]).expand(2, 4).repeat(5, 1)),
        (wide[..., ::2], counts[::2].unsqueeze(-1).expand(6, 4)),
        (wide[0, :1].expand(7, 10), 3),
    ):
        x = logits.clone(memory_format=torch.preserve_format).requires_grad_()
        with kofn.counts.use("native"):
            value = kofn.log_count_prob(x, count)
            (gradient,) = torch.autograd.grad(value.sum(), x)
        with kofn.counts.use("torch"):
            expected = kofn.log_count_prob(x, count)
            (slope,) = torch.autograd.grad(expected.sum(), x)
        torch.testing.assert_close(value, expected, rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(gradient, slope, rtol=1e-13, atol=1e-13)


@needs_core
def test_threads_of_the_core_give_the_same_answers(two_threads: None) -> None:
    bags = ragged_bags(5, bags=6000, largest=150)
    with kofn.counts.use("native"):
        found = everything(*bags)
        torch.set_num_threads(1)
        for a, b in zip(found, everything(*bags), strict=True):
            assert torch.equal(a, b)


@needs_core
def test_several_python_threads_at_once(two_threads: None) -> None:
    # Small calls that stay serial and large ones that start threads of their own, all at the same time.
    batches = [ragged_bags(seed, bags=200 if seed % 2 else 4000, largest=100) for seed in range(6)]

    def run(batch: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
        with kofn.counts.use("native"):
            return everything(*batch)

    expected = [run(batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for found, want in zip(pool.map(run, batches), expected, strict=True):
                for a, b in zip(found, want, strict=True):
                    assert torch.equal(a, b)


def test_use_is_of_one_thread_only() -> None:
    with kofn.counts.use("torch"), ThreadPoolExecutor(1) as pool:
        assert kofn.counts.backend() == "torch"
        assert pool.submit(kofn.counts.backend).result() == ("native" if _native.available else "torch")


class _Bags(Dataset[Tensor]):
    """A data set that computes count laws in its workers, large enough for the core's threads."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Tensor:
        torch.set_num_threads(2)
        logits, counts, offsets = ragged_bags(index, bags=4000, largest=60)
        return kofn.log_count_prob(logits, counts, offsets=offsets)


@needs_core
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_workers_of_a_data_loader(two_threads: None) -> None:
    expected = [_Bags()[index] for index in range(6)]  # the parent has had its threads before it forks
    loader = DataLoader(_Bags(), batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60)
    for found, want in zip(loader, expected, strict=True):
        assert torch.equal(found, want)


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True
    )


@pytest.mark.slow
def test_an_environment_variable_turns_the_core_off() -> None:
    code = "import kofn; print(kofn.counts.backend())"
    assert run_python(code, KOFN_BACKEND="torch").stdout.strip() == "torch"
    wrong = run_python(code, KOFN_BACKEND="cuda")
    assert wrong.returncode != 0
    assert "`name` must be one of native, torch; got 'cuda'" in wrong.stderr


@pytest.mark.slow
def test_without_a_compiler_it_installs_and_works(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "native", "src"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    hidden = {key: value for key, value in os.environ.items() if key not in {"KOFN_NATIVE", "CXXFLAGS"}}
    hidden |= {"CC": "/no/compiler", "CXX": "/no/compiler"}
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(built), str(source)]
    subprocess.run(pip, env=hidden, check=True, capture_output=True)
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "libkofn" in name]
        archive.extractall(tmp_path / "site")
    code = (
        "import sys; sys.meta_path = [f for f in sys.meta_path if 'ScikitBuild' not in repr(f)]; "  # editable installs
        f"sys.path.insert(0, {str(tmp_path / 'site')!r}); import torch, kofn; "
        "print(kofn.__file__, kofn.counts.backend(), kofn.log_count_prob(torch.zeros(4), 2).exp().item())"
    )
    out = run_python(code)
    place, name, value = out.stdout.split()
    assert place.startswith(str(tmp_path))
    assert name == "torch"
    assert float(value) == pytest.approx(0.375)
    strict = subprocess.run(pip, env={**hidden, "KOFN_NATIVE": "1"}, capture_output=True)
    assert strict.returncode != 0  # asked for, the core is not silently left out


@needs_core
@pytest.mark.parametrize("level", _native.levels())
@pytest.mark.parametrize("n", [3, 40, 300])
def test_every_instruction_set_ends_at_logits_that_no_tilt_can_tell_apart(
    level: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With AVX-512 this never came back: the likeliest count of a window was rounding below zero, and none was taken.
    monkeypatch.setattr(_native, "level", level)
    g = torch.Generator().manual_seed(n)
    scales = torch.tensor([1e-8, 1.0, 1e12, 1e300], dtype=torch.float64)
    x = scales[torch.randint(0, 4, (8, n), generator=g)] * torch.randn(8, n, generator=g, dtype=torch.float64)
    with kofn.counts.use("native"):
        x.requires_grad_()
        value = kofn.log_count_distribution(x)
        (gradient,) = torch.autograd.grad(value.clamp(min=-1e300).sum(), x)
    assert not value.isnan().any()
    assert gradient.isfinite().all()


@pytest.mark.slow
@needs_core
@pytest.mark.parametrize("text", ["6", "abc", "1024", "-1", "2.5"])
def test_an_instruction_set_of_no_name_is_ignored_with_a_warning(text: str) -> None:
    # 6 died of an illegal instruction where one of its bits is missing; a word broke the import.
    code = "import torch, kofn; print(kofn.log_count_prob(torch.zeros(4), 2).exp().item())"
    out = run_python(code, KOFN_LEVEL=text)
    assert out.stdout.strip() == "0.375"
    assert "KOFN_LEVEL must be 0, for the best instruction set, or one that this machine has: 1" in out.stderr
    assert f"got {text!r}, which is ignored" in out.stderr


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", " ", "0", "1"])
def test_an_instruction_set_that_is_there_is_used_in_silence(text: str) -> None:
    out = run_python("from kofn.counts import _native as n; print(n.level)", KOFN_LEVEL=text)
    assert (out.stdout.strip(), out.stderr) == (text.strip() or "0", "")


@needs_core
def test_two_levels_at_once_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "level", 3)
    with kofn.counts.use("native"), pytest.raises(RuntimeError, match="KOFN_LEVEL=3"):
        kofn.log_count_prob(torch.zeros(3), 1)


@needs_core
@pytest.mark.parametrize("size", [3, 5, 7])
def test_an_interval_of_a_small_shared_bag_has_no_alias(size: int) -> None:
    """With as many frequencies as instances, P(S = n) would be added to P(S = 0)."""
    x, low = torch.linspace(-1, 1, size, dtype=torch.float64), torch.tensor([0])
    for high in range(size):
        ends = low, torch.tensor([high])
        shared, slope = _native.shared_event(x[None], None, *ends, 1, lambda part: [part], gradient=True)
        value, expected, *_ = _native.event(x[None], None, None, *ends, gradient=True)
        torch.testing.assert_close(shared, value, rtol=1e-13, atol=1e-13)
        torch.testing.assert_close(slope, expected, rtol=0, atol=1e-13)
