"""The files of a release: a source distribution from a commit, and three wheels from that source distribution."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "release"
ARCHITECTURES = ("x86_64", "aarch64")


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command, its own Python's tools first, and return what it printed; a failure raises with its output."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PATH": tools, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed with {done.returncode}:\n{done.stdout}")
    return done.stdout


def build(commit: str, dist: Path) -> None:
    """Write the source distribution of a commit into `dist`, and wheels: for any machine, Linux x86_64 and aarch64.

    The commit is taken out of git, so that nothing that is not tracked can come in, and the wheels are built from the
    unpacked source distribution, so that it is known to be complete.
    """
    shutil.rmtree(WORK / "source", ignore_errors=True)
    shutil.rmtree(dist, ignore_errors=True)
    WORK.mkdir(parents=True, exist_ok=True)
    run("git", "archive", "--prefix=source/", f"--output={WORK / 'source.tar'}", commit)
    _unpack(WORK / "source.tar")
    date = run("git", "show", "--no-patch", "--format=%ct", commit).strip()
    _build("--sdist", WORK / "source", dist, SOURCE_DATE_EPOCH=date)
    (sdist,) = dist.glob("*.tar.gz")
    _unpack(sdist)
    source = WORK / sdist.name.removesuffix(".tar.gz")
    _build("--wheel", source, dist, SOURCE_DATE_EPOCH=date, KOFN_NATIVE="0")
    for arch in ARCHITECTURES:
        raw = WORK / arch
        shutil.rmtree(raw, ignore_errors=True)
        _build(
            "--wheel",
            source,
            raw,
            SOURCE_DATE_EPOCH=date,
            KOFN_NATIVE="1",
            KOFN_ARCH=arch,
            KOFN_PYTHON=sys.executable,
            CMAKE_TOOLCHAIN_FILE=str(ROOT / "release" / "zig.cmake"),
            _PYTHON_HOST_PLATFORM=f"linux-{arch}",  # the platform in the wheel's name
        )
        (wheel,) = raw.glob("*.whl")
        run("auditwheel", "repair", "--plat", "auto", "--wheel-dir", dist, wheel)


def _build(kind: str, source: Path, out: Path, **environment: str) -> None:
    run(sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", out, source, cwd=WORK, **environment)


def _unpack(archive: Path) -> None:
    with tarfile.open(archive) as members:
        members.extractall(WORK, filter="data")
