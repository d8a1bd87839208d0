"""Which instances belong to which bag: ragged, in any order, possibly overlapping."""

from kofn.bags._bags import Bags

__all__ = ["Bags"]
