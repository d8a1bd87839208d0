"""The core on machines that are not at hand, by qemu: processors without AVX-512 or AVX2, and aarch64.

qemu 7.2 and later know AVX2, none knows AVX-512: that is checked where the processor has it.
"""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

from release.build import ROOT, WORK, run

CHECK = ROOT / "release" / "core_check.py"
PROCESSORS = {"Nehalem": "1", "max": "1,2"}  # of x86_64, and the instruction sets that the core must find there


def on_processor(processor: str, library: Path) -> str:
    """Check a library for x86_64 on one of `PROCESSORS`."""
    return run("qemu-x86_64", "-cpu", processor, Path(sys.executable).resolve(), CHECK, library, PROCESSORS[processor])


def on_aarch64(library: Path) -> str:
    """Check a library for aarch64 under a Python for it, which comes from Debian."""
    system = _aarch64_system()
    (python,) = (system / "usr" / "bin").glob("python3.*[0-9]")
    return run("qemu-aarch64", "-L", system, python, CHECK, library, "1")


def why_not(program: str) -> str:
    """Why nothing can be emulated by this program of qemu, or nothing if it can."""
    if not shutil.which(program):
        return f"{program} is not installed (Debian: apt-get install qemu-user)"
    if program == "qemu-aarch64" and platform.freedesktop_os_release()["ID"] != "debian":
        return "its Python is only fetched on Debian"
    return ""


def _aarch64_system() -> Path:
    """A folder with Debian's Python for aarch64 and what it needs, unpacked; nothing is installed."""
    folder, system = WORK / "aarch64-debian", WORK / "aarch64-debian" / "system"
    if system.exists():
        return system
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": "/dev/null",  # as if nothing were installed
        "Dir::Cache": folder,
        "Debug::NoLocking": "true",
    }
    apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in settings.items())]
    run(*apt, "update")
    run(*apt, "install", "--download-only", "--no-install-recommends", "-y", "python3-minimal", "libpython3-stdlib")
    for package in sorted((folder / "archives").glob("*.deb")):
        run("dpkg-deb", "-x", package, folder / "unpacked")
    (folder / "unpacked").rename(system)
    return system
