"""Photograph the report of the README's model, light and dark: `make photographs`, which needs Chromium."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from base64 import b64decode
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests"), str(HERE.parent / "hooks")]

import outputs  # noqa: E402
from headless_chromium import Chromium  # noqa: E402

WIDTH, HEIGHT = 1000, 700  # of the page; each of its pixels is one and a half in the picture


def main() -> None:
    """Run the README's commands in an empty folder and photograph the top of the page that they write."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in outputs.run(HERE.parents[1] / "README.md"):
            if "-o report.html" in block.code:
                break
        with Chromium.opened() as browser:
            for scheme in ("light", "dark"):
                browser.open(Path("report.html").resolve().as_uri(), width=WIDTH, scheme=scheme)
                photograph(browser, HERE / f"report-{scheme}.png")
        os.chdir(HERE)


def photograph(browser: Chromium, path: Path) -> None:
    """The top of the page, in 64 colours: text and lines need no more, and the file is a quarter of the size."""
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1.5}
    picture = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    image = Image.open(io.BytesIO(b64decode(picture["data"]))).convert("RGB")
    image.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"wrote {path.name}, {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
