"""Colon cancer: which nuclei of a stained tissue image are epithelial?"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kofn import _require
from kofn.bags import Bags
from kofn.datasets._downloads import Source, find, read

CLASSES = ("epithelial", "fibroblast", "inflammatory", "others")
IMAGES = tuple(f"img{number}" for number in range(1, 101))
SIZE = 27  # of a patch, in pixels; odd, so that it has a centre

# The checksum of an image is that of its five files' checksums in the order in which they are read; that of the set is
# the one of all images' checksums. The first eight digits of each image's only serve to say which one differs.
SET_SHA256 = "53510b0ad9390ebf57eb699f3c91839c122a26c88e49547ce5ff7746f8c1cb5a"
IMAGE_SHA256 = (
    "e59e8feaed8a042939740774b743a2e6795287c92d701e5eb4d92c276fd7677cbe545e129ce781eff4fed7f44940a799a6a82897"
    "95c9378b6187d31f32d40ef13272ae7f42889705cdb8d3b45ea2b623aa960fd317f83c0587f59f785024848f17434288337a4f64"
    "03c8ccfb7c48b01924563d1fb8bd4d1f9e3f4b1070f72d73ad4f10272cd9022bb3b590b3ae6d5ed25881828401a43fef5155e70d"
    "d6d42af8696f9f9002aebe980dff756aef0626b123c609d6a873765f0474ced49a2d6615c8936e908bf86fdab338f7c3424e7a5c"
    "adf2f38eb07baffafc510e456588f97b0765605c633a27f0575276239c9b1e333163d84e01e040101ef8d01e23d1a3e59f30ef24"
    "50c2842b727d6fbd894ed49e6e3b9e484da6fa21871e2696648e90c0c5b7cbda595ef861a34ff6d0d867339cca786bacf7dcee2d"
    "b8bb5ed573da3a507c951e1d5808b3237f732a5f14a098bf9f8a1b263c373a52b2e0989775a77c785a9cfa0c775de888dd784504"
    "1c324a898a19f0d94078f294d4ea17a7a0b0ca400d248f0c19c4077a92505d6c821fdb1f"
)


def _files(image: str) -> list[str]:
    return [f"{image}/{image}.bmp", *(f"{image}/{image}_{name}.mat" for name in CLASSES)]


SOURCE = Source(
    name="Colon cancer (CRCHistoPhenotypes_2016_04_28)",
    folder="CRCHistoPhenotypes_2016_04_28/Classification",
    files=tuple(name for image in IMAGES for name in _files(image)),
    page="https://warwick.ac.uk/fac/cross_fac/tia/data/crchistolabelednucleihe/",
    sha256={},  # by image, below
)


@dataclass(frozen=True, eq=False)
class Colon:
    """Patches around the nuclei of tissue images; a bag is an image.

    Attributes:
        instances: (n, 3, 27, 27) uint8, red, green, blue.
        bags: one for each image, named by it.
        labels: (n,) int64, the class of each nucleus, a position in `classes`.
        classes: epithelial, fibroblast, inflammatory, others.
        bag_labels: (b,) int64, 1 where a nucleus of the image is epithelial.
    """

    instances: Tensor
    bags: Bags
    labels: Tensor
    classes: tuple[str, ...]
    bag_labels: Tensor


def load_colon(root: str | os.PathLike[str] | None = None, download: bool = True) -> Colon:
    """Colon cancer, 22444 nuclei of 100 images of 500 x 500 pixels, 51 of them with epithelial nuclei.

    An instance is the patch of 27 x 27 pixels around the centre of a nucleus. One patch in ten reaches over the border
    of its image, which is continued by reflection: the patch shows tissue everywhere, where white or black would draw
    an edge that only nuclei near the border have.

    The paper uses 99 images, 51 positive and 48 negative, and does not say which it leaves out. It is img76 in all
    likelihood: its one nucleus lies in a corner, so that it is the only image without a patch inside the image. It is
    in `bags` here; the example leaves it out.

    The data may be used for research only. No link to the files is known to last, so that they are not downloaded: get
    them from the publisher's page, which the error names.

    Args:
        root: folder that holds ``CRCHistoPhenotypes_2016_04_28/Classification/img1/img1.bmp`` and so on, or the folder
            ``Classification`` itself; by default $KOFN_DATA, then the user's cache.
        download: has no effect; it is there because every loader has it.

    Raises:
        FileNotFoundError: files are not there; the message says where to get them.
        ValueError: an image whose files have a wrong checksum.

    Examples:
        >>> from kofn.datasets import load_colon
        >>> colon = load_colon("data")  # doctest: +SKIP
        >>> in_paper = [name != "img76" for name in colon.bags.names]  # doctest: +SKIP
        >>> bags, bag_labels = colon.bags.select(in_paper), colon.bag_labels[in_paper]  # doctest: +SKIP
        >>> bag_labels.bincount().tolist()  # doctest: +SKIP
        [48, 51]

    Reference:
        Sirinukunwattana et al. Locality sensitive deep learning for detection and classification of nuclei in routine
        colon cancer histology images. IEEE Transactions on Medical Imaging, 2016.
    """
    folder = find(SOURCE, root, download=download)
    contents = read(SOURCE, folder)
    _verify(contents, folder)
    patches, labels, sizes = [], [], []
    for image in IMAGES:
        picture, *centres = (contents[name] for name in _files(image))
        found = [_centres(content) for content in centres]
        patches.append(_patches(_picture(picture), np.concatenate(found)))
        labels.append(np.repeat(np.arange(len(CLASSES)), [len(points) for points in found]))
        sizes.append(len(labels[-1]))
    bags = Bags(np.arange(sum(sizes)), np.cumsum([0, *sizes]), names=IMAGES)
    truth = torch.from_numpy(np.concatenate(labels))
    has_epithelial = (bags.sum(truth == CLASSES.index("epithelial")) > 0).long()
    instances = torch.from_numpy(np.concatenate(patches)).contiguous()
    return Colon(instances, bags, truth, CLASSES, has_epithelial)


def _verify(contents: Mapping[str, bytes], folder: Path) -> None:
    digests = []
    for image in IMAGES:
        files = (hashlib.sha256(contents[name]).digest() for name in _files(image))
        digests.append(hashlib.sha256(b"".join(files)))
    found = hashlib.sha256(b"".join(digest.digest() for digest in digests)).hexdigest()
    if found != SET_SHA256:
        starts = [IMAGE_SHA256[at : at + 8] for at in range(0, len(IMAGE_SHA256), 8)]
        wrong = [
            f"{folder / image} (expected {start}..., found {digest.hexdigest()[:8]}...)"
            for image, start, digest in zip(IMAGES, starts, digests, strict=True)
            if digest.hexdigest()[:8] != start
        ]
        raise ValueError(
            f"{SOURCE.name}: the .bmp file or a .mat file is damaged or another version in "
            f"{', '.join(wrong[:5])}{' and more' * (len(wrong) > 5)}; the sha256 of the set must be {SET_SHA256}, it "
            f"is {found}. Delete them and get them again: {SOURCE.page}"
        )


def _picture(content: bytes) -> np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]:
    image = _require.package("PIL.Image", extra="datasets")
    return np.asarray(image.open(io.BytesIO(content), formats=("BMP",)).convert("RGB"))


def _centres(content: bytes) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Centres (x, y) of the nuclei of one class, none to many."""
    table = _require.package("scipy.io", extra="datasets").loadmat(io.BytesIO(content))["detection"]
    return np.asarray(table, dtype=np.float64).reshape(-1, 2)


def _patches(
    picture: np.ndarray[tuple[int, int, int], np.dtype[np.uint8]],
    centres: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, int, int, int], np.dtype[np.uint8]]:
    """Patches around centres, (n, 3, 27, 27).

    Matlab counts pixels from 1, and the integer centres run from 1 to 500: pixel = round(centre) - 1. Centres
    that fell below the first pixel (0.15) belong to it.
    """
    half = SIZE // 2
    height, width = picture.shape[:2]
    columns, rows = np.clip(np.rint(centres) - 1, 0, [width - 1, height - 1]).astype(np.int64).T
    padded = np.pad(picture, ((half, half), (half, half), (0, 0)), mode="reflect")
    # Window (r, c) of the padded picture starts `half` before pixel (r, c) of the picture, so that is its centre.
    windows = np.lib.stride_tricks.sliding_window_view(padded, (SIZE, SIZE), axis=(0, 1))
    patches: np.ndarray[tuple[int, int, int, int], np.dtype[np.uint8]] = windows[rows, columns]
    return patches
