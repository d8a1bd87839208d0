"""Speed and accuracy of the count engine beside others, in one process: `make bench`."""
