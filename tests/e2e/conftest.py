"""What several of the folders here open."""

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def rooms() -> Generator[Path]:
    """A folder that the users of jails can reach."""
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "rooms"
