"""MAGIC gamma telescope: was a shower of light in the air caused by a gamma ray?"""

from __future__ import annotations

import os

import numpy as np
import torch

from kofn.datasets._downloads import Source, find, read
from kofn.datasets._labelled import Labelled

SOURCE = Source(
    name="MAGIC",
    folder="magic",
    files=("magic04.data",),
    page="https://archive.ics.uci.edu/dataset/159/magic+gamma+telescope",
    sha256={"magic04.data": "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a"},
    urls=("https://archive.ics.uci.edu/static/public/159/magic+gamma+telescope.zip",),
)

COLUMNS = ("fLength", "fWidth", "fSize", "fConc", "fConc1", "fAsym", "fM3Long", "fM3Trans", "fAlpha", "fDist")


def load_magic(root: str | os.PathLike[str] | None = None, download: bool = True) -> Labelled:
    """MAGIC, 19020 rows with 10 features; positive is g, a gamma ray, negative h, a hadron.

    Its publisher made no split; ``load_magic().split(0.8, generator=...)`` makes one.

    Args:
        root: folder that holds ``magic/magic04.data``, or the file itself; by default $KOFN_DATA, then the user's
            cache.
        download: download the file from UCI if it is missing.

    Returns:
        Float32 (19020, 10) instances, in the order of the file: all g, then all h.

    Raises:
        FileNotFoundError: the file is not there and could not be downloaded.
        ValueError: a file with a wrong checksum.

    Examples:
        >>> from kofn.datasets import load_magic
        >>> len(load_magic("data"))  # doctest: +SKIP
        19020

    Reference:
        Bock. MAGIC Gamma Telescope. UCI Machine Learning Repository, 2004.
    """
    text = read(SOURCE, find(SOURCE, root, download=download))["magic04.data"].decode("ascii")
    table = np.array([line.split(",") for line in text.split()])
    return Labelled(
        torch.from_numpy(table[:, :-1].astype(np.float32)),
        torch.from_numpy((table[:, -1] == "g").astype(np.int64)),
        COLUMNS,
        ("h", "g"),
    )
