"""A fuzz of both engines: awkward bags, an oracle that knows nothing of the engines, and what comes of it."""
