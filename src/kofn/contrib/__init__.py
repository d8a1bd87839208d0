"""Experimental ways to compute a count, which nobody has been able to try where they matter; imported by nothing."""
