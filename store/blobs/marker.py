"""The marker in a folder or a bucket of payloads: it names the store whose payloads lie there.

The sandbox role knows the folder and no database, so this is all that it can compare.
"""

import asyncio
import json
from pathlib import Path

from backstay.errors import WorkerMisfit
from store.faults import disk_faults
from system.files import make_private_directory, write_whole

NAME = ".store.json"
_PAUSE_S = 0.2


def read_marker(root: Path) -> str:
    """Return the id of the store that the folder belongs to; empty when it has no marker that can be read."""
    with disk_faults():
        try:
            return store_in((root / NAME).read_bytes())
        except FileNotFoundError:
            return ""


def write_marker(root: Path, store: str) -> None:
    """Let the folder belong to a store from now on."""
    with disk_faults():
        make_private_directory(root)
        write_whole(root / NAME, marker_of(store))


def store_in(marker: bytes) -> str:
    """Return the id of the store that a marker names; empty when it cannot be read."""
    try:
        held = json.loads(marker)
    except ValueError:
        return ""
    return str(held.get("store", "")) if isinstance(held, dict) else ""


def marker_of(store: str) -> bytes:
    """Return the marker that names a store."""
    return f'{{"store": "{store}"}}\n'.encode()


async def await_marker(root: Path, seconds: float) -> str:
    """Return the id once the folder has a marker, which a new installation gets from its first worker.

    Raises WorkerMisfit when it has none by then.
    """
    until = asyncio.get_running_loop().time() + seconds
    while not (store := await asyncio.to_thread(read_marker, root)):
        if asyncio.get_running_loop().time() >= until:
            raise WorkerMisfit(
                f"BACKSTAY_BLOBS: {root} belongs to no store, since it has no {NAME}; name the folder that the "
                "workers in the runs role use, or start one of them first"
            )
        await asyncio.sleep(_PAUSE_S)
    return store
