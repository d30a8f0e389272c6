"""What the tests of jails share."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A workspace whose files have the modes that a usual umask gives."""
    place = tmp_path / "workspace"
    usual = os.umask(0o022)
    place.mkdir()
    yield place
    os.umask(usual)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user can reach, as the one that jails have outside must; the usual ones are closed."""
    place = Path(tempfile.mkdtemp(prefix="backstay-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)
