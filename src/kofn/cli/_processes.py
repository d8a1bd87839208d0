"""The processes that torchrun starts for one command: all of them train, and the first one writes and talks."""

from __future__ import annotations

import os


def together() -> int:
    """The number of processes that run this command together.

    Examples:
        >>> together()
        1
    """
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first() -> bool:
    """Whether this process is the one that writes and talks; it is, if it is alone."""
    return os.environ.get("RANK", "0") == "0"


def require_one_way(learner: str, cluster: str | None) -> None:
    """Require a learner that the machines which are given can be used for."""
    several = "torchrun --nproc-per-node 2 -m kofn fit ... --learner network"
    if cluster is not None and learner != "trees":
        raise ValueError(
            f"--cluster goes with --learner trees; got {learner}. Networks are trained by several processes with: "
            f"{several}. Linear models are fitted in one process."
        )
    if together() > 1 and learner != "network":
        raise ValueError(
            f"torchrun goes with --learner network; got {learner}. Trees are grown on several machines with --cluster. "
            f"Linear models are fitted in one process."
        )


def lost_another(error: Exception) -> bool:
    """Whether an error of torch means that another of the processes is no more."""
    words = str(error).lower()
    return (
        together() > 1 and isinstance(error, RuntimeError) and any(word in words for word in ("gloo", "nccl", "peer"))
    )
