"""Adult (census income): does a person earn more than 50,000 dollars a year?"""

from __future__ import annotations

import os

import numpy as np
import torch

from kofn.datasets._downloads import Source, find, read
from kofn.datasets._labelled import Labelled, Splits

SOURCE = Source(
    name="Adult",
    folder="adult",
    files=("adult.data", "adult.test"),
    page="https://archive.ics.uci.edu/dataset/2/adult",
    sha256={
        "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    },
    urls=("https://archive.ics.uci.edu/static/public/2/adult.zip",),
)

# The file's columns in its order; True where the column is categorical.
COLUMNS = {
    "age": False,
    "workclass": True,
    "fnlwgt": False,
    "education": True,
    "education-num": False,
    "marital-status": True,
    "occupation": True,
    "relationship": True,
    "race": True,
    "sex": True,
    "capital-gain": False,
    "capital-loss": False,
    "hours-per-week": False,
    "native-country": True,
}


def load_adult(root: str | os.PathLike[str] | None = None, download: bool = True) -> Splits:
    """Adult, 32561 training and 16281 test rows with 108 features; positive is an income of more than 50K.

    All 14 columns are kept and no row is dropped. The six numeric ones stay as they are. The eight categorical ones
    become one column for each category that occurs in either file, "workclass=Private"; "?" is a category too.
    Nothing is standardised: `standardise` does that.

    Args:
        root: folder that holds ``adult/adult.data`` and ``adult/adult.test``, or these files themselves; by default
            $KOFN_DATA, then the user's cache.
        download: download the files from UCI if they are missing.

    Returns:
        Splits of float32 (n, 108) instances.

    Raises:
        FileNotFoundError: the files are not there and could not be downloaded.
        ValueError: a file with a wrong checksum.

    Examples:
        >>> from kofn.datasets import load_adult
        >>> train, test = load_adult("data")  # doctest: +SKIP
        >>> train.instances.shape, train.features[:2]  # doctest: +SKIP
        (torch.Size([32561, 108]), ('age', 'workclass=?'))

    Reference:
        Becker, Kohavi. Adult. UCI Machine Learning Repository, 1996.
    """
    contents = read(SOURCE, find(SOURCE, root, download=download))
    train, test = _rows(contents["adult.data"]), _rows(contents["adult.test"])
    table = np.array(train + test)
    parts: list[np.ndarray[tuple[int, int], np.dtype[np.float32]]] = []
    features: list[str] = []
    for values, (name, categorical) in zip(table.T[:-1], COLUMNS.items(), strict=True):
        if categorical:
            categories, which = np.unique(values, return_inverse=True)
            parts.append(np.eye(len(categories), dtype=np.float32)[which])
            features += [f"{name}={category}" for category in categories]
        else:
            parts.append(values.astype(np.float32)[:, None])
            features.append(name)
    both = Labelled(
        torch.from_numpy(np.concatenate(parts, axis=1)),
        torch.from_numpy((np.char.rstrip(table[:, -1], ".") == ">50K").astype(np.int64)),  # the test file's end in one
        tuple(features),
        ("<=50K", ">50K"),
    )
    rows = torch.arange(len(both))
    return Splits(both.select(rows[: len(train)]), both.select(rows[len(train) :]))


def _rows(content: bytes) -> list[list[str]]:
    """The fields of each line; the test file's first is a remark that starts with a bar."""
    lines = content.decode("ascii").splitlines()
    return [line.split(", ") for line in lines if line and not line.startswith("|")]
