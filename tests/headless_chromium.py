"""Headless Chromium for the tests marked `browser`, which look at pages; skipped where it or its driver is missing."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import Self

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-dev-shm-usage "
    "--disable-background-networking --disable-component-update --disable-sync"
)
# For scripts that measure contrast as WCAG defines it: the channels of a colour, and their relative luminance.
LUMINANCE = """
const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
"""


class Chromium:
    """A page at a time, at a width, in light or dark."""

    def __init__(self, folder: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for flag in [*FLAGS.split(), f"--user-data-dir={folder / 'profile'}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
        self.driver.set_page_load_timeout(60)
        self.driver.set_script_timeout(30)
        self.driver.command_executor.client_config.timeout = 90  # a browser that hangs is an error, not a long wait
        self.folder = folder

    def open(self, address: str, *, width: int, scheme: str, media: str = "") -> None:
        """Show a page, and wait until it stands at its width.

        The driver's own wait for the page to load ends too early at times, on a busy machine, while the browser shows
        the page before it or is about to change the width.
        """
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        self.driver.get(address)
        stands = (
            "return location.href.split('#')[0] === arguments[0] && document.readyState === 'complete'"
            " && matchMedia(`(width: ${arguments[1]}px)`).matches"
        )
        self.until(stands, address.split("#")[0], width)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str, *arguments: Any) -> Any:
        """What the script returns as soon as that is true: events come after the click, the key or the address."""
        wait = WebDriverWait(self.driver, 30, poll_frequency=0.05)
        return wait.until(lambda driver: driver.execute_script(script, *arguments), f"{script} of {arguments}")

    def log(self, kind: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.driver.get_log(kind)
        return entries

    def requested(self) -> list[str]:
        """Addresses that pages asked for since the last look; what the browser's own first page still loads is left out."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        asked = [message for message in messages if message["method"] == "Network.requestWillBeSent"]
        return [
            message["params"]["request"]["url"]
            for message in asked
            if not message["params"]["documentURL"].startswith(("chrome:", "chrome-untrusted:"))
        ]

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Self]:
        """A browser with a folder of its own, both gone afterwards."""
        if CHROMIUM is None or DRIVER is None:
            pytest.skip("no Chromium with its driver here: apt-get install chromium chromium-driver")
        with tempfile.TemporaryDirectory(prefix="kofn-page-", ignore_cleanup_errors=True) as folder:
            os.environ.setdefault("SE_OFFLINE", "true")
            browser = cls(Path(folder))
            try:
                yield browser
            finally:
                browser.driver.quit()
