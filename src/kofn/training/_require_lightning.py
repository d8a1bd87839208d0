"""Imported first, so that what is missing is named together with the extra that brings it."""

from kofn import _require

_require.package("lightning.pytorch", extra="train")
