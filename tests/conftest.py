from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# Started in the background, a shell makes Ctrl-C ignored, here and in every child: the tests that press it need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

torch.set_num_threads(1)  # a second, spinning thread beside the other test process costs more than it brings
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # scipy's, not loaded yet: L-BFGS would be six times as slow


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked ``data(folder)`` where $KOFN_DATA does not have the folder; undo what torch's compiler did."""
    # When it is first used, it turns the validation of torch.distributions off for the rest of the process.
    torch.distributions.Distribution.set_default_validate_args(True)
    for mark in item.iter_markers("data"):
        (folder,), place = mark.args, os.environ.get("KOFN_DATA")
        if place is None or not (Path(place) / folder).is_dir():
            pytest.skip(f"there is no folder {folder} in $KOFN_DATA ({place or 'not set'})")


settings.register_profile("kofn", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("kofn")
