"""Is kofn right on a device, and how fast: `python -m bench.device`."""
