"""MNIST: handwritten digits."""

from __future__ import annotations

import gzip
import os

import numpy as np
import torch
from torch import Tensor

from kofn.datasets._downloads import Source, find, read
from kofn.datasets._labelled import Labelled, Splits

_SHA256 = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"  # LeCun's own page answers no more

SOURCE = Source(
    name="MNIST",
    folder="MNIST/raw",
    files=tuple(_SHA256),
    page=_MIRROR,
    sha256=_SHA256,
    urls=tuple(_MIRROR + name for name in _SHA256),
)


def load_mnist(root: str | os.PathLike[str] | None = None, download: bool = True) -> Splits:
    """MNIST, 60000 training and 10000 test images of digits.

    Args:
        root: folder that holds ``MNIST/raw/train-images-idx3-ubyte.gz`` and so on (torchvision's layout), or these
            files themselves; by default $KOFN_DATA, then the user's cache.
        download: download the files if they are missing.

    Returns:
        Splits of uint8 (n, 1, 28, 28) images, 0 black to 255 white; a label is its digit.

    Raises:
        FileNotFoundError: the files are not there and could not be downloaded.
        ValueError: a file with a wrong checksum.

    Examples:
        >>> from kofn.datasets import load_mnist
        >>> load_mnist("data").test.instances.shape  # doctest: +SKIP
        torch.Size([10000, 1, 28, 28])

    Reference:
        LeCun, Bottou, Bengio, Haffner. Gradient-based learning applied to document recognition. Proc. IEEE, 1998.
    """
    contents = read(SOURCE, find(SOURCE, root, download=download))
    parts = (
        Labelled(
            _array(contents[f"{part}-images-idx3-ubyte.gz"])[:, None],
            _array(contents[f"{part}-labels-idx1-ubyte.gz"]).long(),
            (),
            tuple("0123456789"),
        )
        for part in ("train", "t10k")
    )
    return Splits(*parts)


def _array(packed: bytes) -> Tensor:
    """An idx file: two zeros, the dtype (8 is uint8), the number of dimensions, each as a big-endian int32, bytes."""
    content = gzip.decompress(packed)
    dims = content[3]
    shape = np.frombuffer(content, ">i4", count=dims, offset=4)
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=4 + 4 * dims).reshape(shape).copy())
