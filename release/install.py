"""Wheels as a user has them: which one pip chooses, and one installed where there is no compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from release.build import ROOT, WORK, run

# Where a user is, and the end of the name of the wheel that pip must choose there.
CHOICES = {
    "manylinux_2_17_x86_64": "manylinux_2_17_x86_64.whl",
    "manylinux_2_17_aarch64": "manylinux_2_17_aarch64.whl",
    "macosx_11_0_arm64": "any.whl",
    "win_amd64": "any.whl",
}
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++")
TABLE = "data get breast-cancer --bag-size 8 -o tumours.csv"
FIT = "fit llp tumours.csv --bag bag --label proportion --drop truth -o model"


def chosen_wheels(dist: Path) -> dict[str, str]:
    """The wheel that pip takes from `dist` on each platform; any other than that of `CHOICES` raises."""
    chosen = {}
    for platform, end in CHOICES.items():
        place = WORK / "chosen" / platform
        from_dist = ("--no-index", "--no-deps", "--only-binary", ":all:", "--find-links", dist)
        run(sys.executable, "-m", "pip", "download", "-q", *from_dist, "--platform", platform, "-d", place, "kofn")
        (wheel,) = place.glob("*.whl")
        if not wheel.name.endswith(end):
            raise RuntimeError(f"on {platform} pip takes {wheel.name}, not the wheel that ends in {end}")
        chosen[platform] = wheel.name
        wheel.unlink()
    return chosen


def installed(wheel: Path, version: str, backend: str, *, place: Path) -> str:
    """Install a wheel with its command line and all that it needs into a new environment, and use it there."""
    run(sys.executable, "-m", "venv", "--clear", place)
    compilers = [name for name in COMPILERS if shutil.which(name, path=str(place / "bin"))]
    if compilers:
        raise RuntimeError(f"{place} must have no compiler; it has {compilers}")
    in_place(place, "python", "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), f"{wheel}[cli]")
    said = in_place(place, "python", "-I", str(ROOT / "release" / "smoke.py"), version, backend)
    for command in (TABLE, FIT):
        in_place(place, "kofn", *command.split())
    return f"{said.strip()}, without a compiler; kofn fit wrote {(place / 'model').stat().st_size} bytes"


def in_place(place: Path, program: str, *arguments: str) -> str:
    """Run a program of an environment in its folder, with nothing else on the path: no compiler, no other Python."""
    hidden = ("CC", "CXX", "CXXFLAGS", "PYTHONPATH", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if key not in hidden and not key.startswith("KOFN_")}
    command = [str(place / "bin" / program), *arguments]
    done = subprocess.run(
        command, cwd=place, env={**kept, "PATH": str(place / "bin")}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
