"""What the tests of jails share."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user can reach, as the one that jails have outside must; the usual ones are closed."""
    place = Path(tempfile.mkdtemp(prefix="backstay-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)
