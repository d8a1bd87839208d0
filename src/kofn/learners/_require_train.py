"""Imported first, so that what is missing is named together with the extra that brings it."""

from kofn import _require

_require.package("sklearn", extra="train")
_require.package("scipy", extra="train")
