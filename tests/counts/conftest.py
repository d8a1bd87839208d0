from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import kofn
from kofn.counts import _native


@pytest.fixture(params=["torch", "native"], scope="module", autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Everything that is tested of the engine is tested of both implementations."""
    if request.param == "native" and not _native.available:
        if os.environ.get("KOFN_NATIVE") == "1":
            pytest.fail("KOFN_NATIVE=1, but the C++ core is not there")
        pytest.skip("the C++ core is not built: install with a C++ compiler")
    with kofn.counts.use(request.param):
        yield request.param
