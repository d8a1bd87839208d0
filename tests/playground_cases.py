"""The playground on a page of its own, and what the library says of the same bag."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from headless_chromium import Chromium

import kofn
from kofn.report import _playground

NOISES: dict[str, Any] = {
    "Laplace": lambda scale: torch.distributions.Laplace(torch.tensor(0.0).double(), scale),
    "Normal": lambda scale: torch.distributions.Normal(torch.tensor(0.0).double(), scale),
    "DiscreteLaplace": kofn.targets.DiscreteLaplace,
}
TARGETS: dict[str, Any] = {
    "Exactly": lambda of: kofn.Exactly(of["counts"]),
    "AtLeast": lambda of: kofn.AtLeast(of["low"]),
    "Between": lambda of: kofn.Between(of["low"], of["high"]),
    "OneOf": lambda of: kofn.OneOf(of["allowed"]),
    "Noisy": lambda of: kofn.Noisy(of["observed"], NOISES[of["noise"]](of["scale"])),
}


def of_the_library(probabilities: list[float], statement: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
    logits = torch.tensor(probabilities, dtype=torch.float64).logit().requires_grad_()
    loss = kofn.count_loss(logits, TARGETS[statement["name"]](statement))
    (gradient,) = torch.autograd.grad(loss, logits)
    return kofn.log_count_distribution(logits.detach()).exp(), loss.detach().reshape(1), gradient


class Browser(Chromium):
    """The playground on a page of its own, under a policy as strict as that of a report."""

    def show(self, *, width: int = 1280, scheme: str = "light", **bag: Any) -> None:
        style = ":root { color-scheme: light dark; } body { margin: 0; background: light-dark(#fff, #111); }"
        sources = {"style": style + _playground.style(), "script": _playground.script()}
        let_in = "; ".join(
            f"{name}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            for name, text in sources.items()
        )
        path: Path = self.folder / "playground.html"
        path.write_text(
            "<!doctype html><html lang=en><meta charset=utf-8><title>Playground</title><link rel=icon href='data:,'>"
            f"<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; img-src data:; {let_in}\">"
            "<meta name=viewport content='width=device-width, initial-scale=1'>"
            f"<style>{sources['style']}</style>{_playground.elements(**bag)}<script>{sources['script']}</script>"
        )
        self.log("browser")
        self.log("performance")
        self.open(path.as_uri(), width=width, scheme=scheme)

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        found: str = self.one(selector).text
        return found.replace("\u2212", "-")

    def values(self) -> list[float]:
        found = self.run("return [...document.querySelectorAll('[role=slider]')].map((bar) => bar.ariaValueNow)")
        return [float(value) for value in found]

    def preset(self, name: str) -> None:
        self.one(".pg-presets").find_element("xpath", f"button[text()='{name}']").click()
