"""Small images inside a page: numpy arrays as PNG in data addresses."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np

from kofn.report._contents import Image

LARGEST = 96  # pixels of a side that a page keeps


def as_pixels(images: Any) -> Image:
    """Images as uint8, (n, h, w) or (n, h, w, 3).

    Args:
        images: uint8 from 0 to 255, or real numbers from 0 to 1; colours may come first, as in torch.

    Raises:
        ValueError: another shape, values outside their range.
    """
    array = np.asarray(images)
    if array.ndim == 4 and array.shape[1] in (1, 3) and array.shape[3] not in (1, 3):
        array = np.moveaxis(array, 1, 3)
    if array.ndim == 4 and array.shape[3] == 1:
        array = array[..., 0]
    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] != 3):
        raise ValueError(
            f"`images` must be (n, height, width) or (n, height, width, 3); got the shape {np.shape(images)}."
        )
    if array.dtype == np.uint8:
        return array
    values = array.astype(np.float64)
    if not bool(((values >= 0) & (values <= 1)).all()):
        raise ValueError(
            f"`images` must be uint8, or real numbers from 0 to 1; got values from {values.min():g} to "
            f"{values.max():g}. Scale them first."
        )
    return np.rint(values * 255).astype(np.uint8)


def png_address(image: Image) -> str:
    """A data address of an image, (h, w) grey or (h, w, 3) colour, thinned to at most 96 pixels a side.

    Examples:
        >>> import numpy as np
        >>> from kofn.report._images import png_address
        >>> png_address(np.zeros((2, 2), dtype=np.uint8))[:32]
        'data:image/png;base64,iVBORw0KGg'
    """
    step = max(1, -(-max(image.shape[:2]) // LARGEST))
    pixels = np.ascontiguousarray(image[::step, ::step])
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 else 0
    rows = pixels.reshape(height, -1)
    # Each line starts with its filter: 0, none.
    body = zlib.compress(np.concatenate([np.zeros((height, 1), np.uint8), rows], 1).tobytes(), 9)
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", body), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)
    return "data:image/png;base64," + b64encode(data).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
