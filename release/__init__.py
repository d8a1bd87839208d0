"""Building and checking what is published: the source distribution and the wheels. `make release` runs all of it."""
