"""The time of a database file: when this host was started, and how long ago that is.

A person who sets the clock of the host, or gives a process another one, moves no lease with it. All who open the
database read the same start from a file beside it, which the first one to open it after a start of the host writes.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from store.faults import disk_faults
from system.clock import boot, uptime
from system.files import read_json, write_whole


def host_time(file: Path) -> Callable[[], float]:
    """Return what tells the time of a database file, in unix seconds; nobody else may be opening it meanwhile."""
    now = boot()
    if now is None:
        return time.time
    place = file.with_name(f"{file.name}.clock")
    with disk_faults():
        started_at = _known(place, now)
        if started_at is None:
            started_at = _latest(file) - uptime()
            # The next start of the host makes anew in any case what a failure of power could undo here.
            write_whole(place, json.dumps({"boot": now, "started_at": started_at}).encode(), durable=False)
    return lambda: started_at + uptime()


def _known(place: Path, now: str) -> float | None:
    with suppress(ValueError):
        match read_json(place):
            case {"boot": known, "started_at": int() | float() as started_at} if known == now:
                return started_at
            case _:
                pass
    return None


def _latest(file: Path) -> float:
    """Return the time, never before the last write: a host may start with a clock that is far behind."""
    written = (file, file.with_name(f"{file.name}-wal"))
    return max(time.time(), *(path.stat().st_mtime for path in written if path.exists()))
