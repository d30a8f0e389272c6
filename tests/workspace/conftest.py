"""What the tests of workspaces share: real jails over folders that every user can reach."""

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.images.image import Image
from sandbox.isolation.cgroups import find_cgroups, release_cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.snapshots.snapshots import Snapshots
from sandbox.workspaces.jails import WorkspaceJails
from sandbox.workspaces.workspaces import Workspaces
from tests.sandbox.places import image, shared
from tests.workspace.desk import Desk
from tests.workspace.driver import no_test

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def area() -> Iterator[Path]:
    """A folder that every user can reach, with the images that all tests share."""
    place = Path(tempfile.mkdtemp(prefix="backstay-"))
    place.chmod(0o755)
    image("shell")
    (place / "images").symlink_to(shared() / "images")
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def workspaces(area) -> Iterator[Workspaces]:
    """Workspaces in this process, without a host."""
    cgroups = find_cgroups()

    async def open_review() -> Image:
        return await asyncio.to_thread(image, "review")

    jails = WorkspaceJails(
        Nsjail.find(),
        image("shell"),
        folder=area / "jails",
        cgroups=cgroups,
        written_mb=50,
        open_review=open_review,
        test_network=no_test,
    )
    yield Workspaces(
        area / "workspaces", area / "state", jails, lambda workspace: Snapshots(area / "snapshots" / workspace.key)
    )
    release_cgroups(cgroups)


@pytest.fixture
def desk(area, workspaces) -> Desk:
    """A fresh workspace of one run."""
    name = f"w{next(_NUMBERS)}"
    root = area / "workspaces" / name
    root.mkdir(parents=True)
    return Desk(workspaces, name, root)
