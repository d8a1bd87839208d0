"""The C++ core against arithmetic of sixty digits, as wheels are checked: here, and on processors that qemu emulates."""

from __future__ import annotations

from pathlib import Path

import pytest

from kofn.counts import _native
from release import core_check, emulation

pytestmark = pytest.mark.skipif(not _native.available, reason="the C++ core is not built")
LIBRARY = Path(_native._library._name) if _native.available else Path()


def test_every_instruction_set_of_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    levels = _native.levels()
    core_check.main(str(LIBRARY), ",".join(map(str, levels)))
    said = capsys.readouterr().out
    assert [level for level in (1, 2, 4) if f"level {level} off by" in said] == levels


def test_other_instruction_sets_than_expected_are_an_error() -> None:
    with pytest.raises(SystemExit, match="expected instruction sets 7; this machine"):
        core_check.main(str(LIBRARY), "7")


def test_a_wrong_number_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_check, "log", lambda p: float(p.ln()) * (1 + 1e-11))
    with pytest.raises(SystemExit, match=r"instruction set 1 is off by 1.0e-11"):
        core_check.main(str(LIBRARY))


@pytest.mark.slow
@pytest.mark.parametrize("processor", emulation.PROCESSORS)
def test_processors_without_avx512_or_avx2(processor: str) -> None:
    missing = emulation.why_not("qemu-x86_64")
    if missing:
        pytest.skip(missing)
    assert emulation.on_processor(processor, LIBRARY).startswith("x86_64: level 1 off by")
