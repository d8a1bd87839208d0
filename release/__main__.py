"""`python -m release`: builds and checks every file of a release, in dist/, from the last commit; publishes nothing."""

from __future__ import annotations

import platform
import sys
import zipfile
from pathlib import Path

from release import emulation, install
from release.build import ROOT, WORK, build, run
from release.contents import CORE, listing, require_contents
from release.version import version_of

DIST = ROOT / "dist"


def main() -> None:
    """Build, then check; the first thing that is wrong ends it with an error."""
    version = version_of(ROOT)
    commit = run("git", "rev-parse", "--short", "HEAD").strip()
    left_out = ", without the changes that are not committed" if run("git", "diff", "HEAD") else ""
    say(f"kofn {version}, commit {commit}{left_out}")
    build(commit, DIST)
    require_contents(DIST, run("git", "ls-tree", "-r", "-z", "--name-only", commit).split("\0")[:-1])
    wheels = {path.stem.rpartition("-")[2].rpartition(".")[2]: path for path in sorted(DIST.glob("*.whl"))}
    expected = {"any", "manylinux_2_17_x86_64", "manylinux_2_17_aarch64"}
    if set(wheels) != expected:
        raise RuntimeError(f"wheels must be for {sorted(expected)}; they are for {sorted(wheels)}")
    for path in sorted(DIST.iterdir()):
        say(listing(path))
    names = sorted(path.name for path in DIST.iterdir())
    say(run("twine", "check", "--strict", *names, cwd=DIST, NO_COLOR="1", COLUMNS="120"))
    for arch in ("x86_64", "aarch64"):
        say(run("auditwheel", "show", wheels[f"manylinux_2_17_{arch}"]))
    say("\n".join(f"pip on {place} takes {name}" for place, name in install.chosen_wheels(DIST).items()))
    check_cores(wheels)
    if platform.machine() in ("x86_64", "aarch64"):
        native = wheels[f"manylinux_2_17_{platform.machine()}"]
        say(install.installed(native, version, "native", place=WORK / "fresh-native"))
    say(f"{DIST}: {len(list(DIST.iterdir()))} files, built and checked; nothing was published")


def check_cores(wheels: dict[str, Path]) -> None:
    """Hold the cores in the wheels to exact arithmetic: here, and on machines that qemu, if installed, emulates."""
    core = {}
    for arch in ("x86_64", "aarch64"):
        with zipfile.ZipFile(wheels[f"manylinux_2_17_{arch}"]) as wheel:
            core[arch] = Path(wheel.extract(CORE, WORK / "cores" / arch))
    if platform.machine() in core:
        say("core here         " + run(sys.executable, emulation.CHECK, core[platform.machine()]))
    missing = emulation.why_not("qemu-x86_64")
    for name in emulation.PROCESSORS:
        found = f"not checked: {missing}" if missing else emulation.on_processor(name, core["x86_64"])
        say(f"core on {name:9s} {found}")
    missing = emulation.why_not("qemu-aarch64")
    say("core on aarch64   " + (f"not checked: {missing}" if missing else emulation.on_aarch64(core["aarch64"])))


def say(text: str) -> None:
    """Print a step's result at once."""
    print(text.strip("\n"), flush=True)


if __name__ == "__main__":
    main()
