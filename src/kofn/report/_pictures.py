"""Columns that name image files beside the data: small pictures of them, inside the page."""

from __future__ import annotations

import warnings
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from kofn.report._contents import Image

ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")  # Pillow runs other programs for some, whatever a file's name
LOOKED_AT = 200  # values of a column that say whether it names pictures
SIDE = 64  # pixels
MOST_PICTURES = 600  # of about 2 kB each on a page
LARGEST_FILE = 100 * 2**20


class PictureFiles:
    """A column of paths to image files.

    Files must lie in the folder of the data, or in one below it: a table that somebody else wrote cannot make a page
    show other pictures of this machine.

    Args:
        paths: (n,) of each row, relative to the folder or absolute; anything but text is missing.
        folder: of the data.
    """

    def __init__(self, paths: Sequence[Any], folder: Path) -> None:
        self.paths = [path if isinstance(path, str) and path.strip() else "" for path in paths]
        self.folder = folder.resolve()

    def __getitem__(self, row: int) -> Image | None:
        """The picture of a row, (h, w, 3), or None if there is none."""
        opened = self._opened(self.paths[row])
        return None if isinstance(opened, str) else np.asarray(opened, dtype=np.uint8)

    def thumbnail(self, row: int) -> str:
        """The picture of a row as a data address, or why there is none."""
        opened = self._opened(self.paths[row])
        if isinstance(opened, str):
            return opened
        data = BytesIO()
        opened.save(data, "JPEG", quality=80)
        return "data:image/jpeg;base64," + b64encode(data.getvalue()).decode()

    def named(self, row: int) -> str:
        """The path of a row for which a page has no room for a picture, or that it leads to no file."""
        path = self.paths[row]
        try:
            place = (self.folder / path).resolve()
            missing = place.is_relative_to(self.folder) and not place.is_file()
        except (OSError, ValueError):
            missing = True
        return f"file not found: {path}" if path and missing else path

    def _opened(self, path: str) -> Any:
        """A small image in colour, or why there is none."""
        if not path:
            return "no path"
        try:
            from PIL import Image as Pictures
        except ImportError:
            return "pictures need Pillow: pip install pillow"
        try:
            place = (self.folder / path).resolve()
            if not place.is_relative_to(self.folder):
                return f"not in the folder of the data: {path}"
            if not place.is_file():
                return f"file not found: {path}"
            if place.stat().st_size > LARGEST_FILE:
                return f"too large: {path}"
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # such as of a picture that would fill the memory
                with Pictures.open(place, formats=FORMATS) as picture:
                    picture.draft("RGB", (2 * SIDE, 2 * SIDE))
                    small = picture.convert("RGB")
                    small.thumbnail((SIDE, SIDE))
                    return small
        except Exception:  # whatever a damaged file makes a decoder raise
            return f"cannot be read: {path}"


def name_pictures(column: Any) -> bool:
    """Whether a column names image files: all of its first values do that are there.

    Examples:
        >>> name_pictures(["a.png", None, "b/c.JPG"]), name_pictures(["a.png", "b"]), name_pictures([1.5, None])
        (True, False, False)
    """
    if getattr(getattr(column, "dtype", None), "kind", "O") in "biufc":
        return False
    found = 0
    for value in column:
        if isinstance(value, str) and value.strip():
            if not value.strip().lower().endswith(ENDINGS):
                return False
            found += 1
        elif isinstance(value, int | float) and value == value:
            return False
        if found == LOOKED_AT:
            break
    return found > 0


def with_pictures(columns: Sequence[tuple[str, Any]], folder: Path | None) -> list[tuple[str, Any]]:
    """Columns of which those that name image files of a folder are `PictureFiles`, and come last."""
    if folder is None:
        return list(columns)
    named = [name_pictures(column) for _, column in columns]
    plain = [column for column, pictures in zip(columns, named, strict=True) if not pictures]
    files = [
        (name, PictureFiles(list(paths), folder)) for (name, paths), yes in zip(columns, named, strict=True) if yes
    ]
    return [*plain, *files]
