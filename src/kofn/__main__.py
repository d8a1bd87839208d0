"""`python -m kofn` is the command `kofn`."""

from kofn.cli import main

if __name__ == "__main__":
    main()
