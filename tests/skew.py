"""Processes whose wall clock is wrong, as that of a host that nobody sets: libfaketime stands before the C library."""

import importlib.util
from pathlib import Path


def skewed(seconds: float) -> dict[str, str]:
    """Return the environment in which a process, and all that it starts, reads a clock so far ahead, or behind."""
    found = importlib.util.find_spec("libfaketime")
    assert found is not None
    assert found.origin is not None
    library = Path(found.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"
    assert library.is_file(), library
    # Setting a host's clock moves neither the time since its start nor the times that its disk has noted.
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"{seconds:+g}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
