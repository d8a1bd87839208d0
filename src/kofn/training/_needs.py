"""Imported first, so that what is missing is named together with the extra that brings it."""

from kofn import _checks

_checks.extra("lightning.pytorch", "train")
