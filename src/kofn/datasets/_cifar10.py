"""CIFAR-10: small photographs of animals and vehicles."""

from __future__ import annotations

import os

import numpy as np
import torch

from kofn.datasets._downloads import Source, find, read
from kofn.datasets._labelled import Labelled, Splits

_SHA256 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}

SOURCE = Source(
    name="CIFAR-10",
    folder="cifar-10-batches-bin",
    files=tuple(_SHA256),
    page="https://www.cs.toronto.edu/~kriz/cifar.html",
    sha256=_SHA256,
    urls=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    archive_prefix="cifar-10-batches-bin/",
)

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def load_cifar10(root: str | os.PathLike[str] | None = None, download: bool = True) -> Splits:
    """CIFAR-10, 50000 training and 10000 test images of ten classes.

    Args:
        root: folder that holds ``cifar-10-batches-bin/data_batch_1.bin`` and so on (the binary version), or these
            files themselves; by default $KOFN_DATA, then the user's cache.
        download: download the archive (170 MB) if they are missing.

    Returns:
        Splits of uint8 (n, 3, 32, 32) images, planes red, green, blue.

    Raises:
        FileNotFoundError: the files are not there and could not be downloaded.
        ValueError: a file with a wrong checksum.

    Examples:
        >>> from kofn.datasets import load_cifar10
        >>> load_cifar10("data").train.instances.shape  # doctest: +SKIP
        torch.Size([50000, 3, 32, 32])

    Reference:
        Krizhevsky. Learning multiple layers of features from tiny images. 2009.
    """
    contents = read(SOURCE, find(SOURCE, root, download=download))
    test = contents.pop("test_batch.bin")
    return Splits(_images(b"".join(contents.values())), _images(test))


def _images(content: bytes) -> Labelled:
    """Records of one byte for the label and 3072 for the planes."""
    records = np.frombuffer(content, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
    images = records[:, 1:].reshape(-1, 3, 32, 32).copy()  # of its own, not a window into all the records
    return Labelled(torch.from_numpy(images), torch.from_numpy(records[:, 0].astype(np.int64)), (), CLASSES)
