"""Look into a SQLite store without opening it: no migration, no lock, and no library that takes a second to load.

Only commands that list something look like this. Entries that they cannot read so, they read from the open store.
"""

import json
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

_PRUNED = (Path(__file__).parent / "pruned_runs.sql").read_text(encoding="utf-8")
REVISION = (Path(__file__).parent / "revision.sql").read_text(encoding="utf-8")
_UNRELEASED = re.compile(r"r?00(?:0[1-9]|1[0-5])")
_WAIT_S = 2.0
"""How long somebody else may hold the file before it counts as unreadable."""


def pruned_among(file: Path, runs: Iterable[str]) -> frozenset[str] | None:
    """Return which of these runs were pruned; None where that cannot be read.

    The runs are named as the store names them: workflow id, a slash, and the id of the execution.
    """
    try:
        with closing(_opened(file)) as database:
            if is_unreleased(str(*database.execute(REVISION).fetchone())):
                return None
            found = database.execute(_PRUNED, (json.dumps(list(runs)),))
            return frozenset(name for (name,) in found)
    except sqlite3.Error:
        return None


def is_unreleased(revision: str) -> bool:
    """Return whether a store is of before the first release; such a store is not read."""
    return _UNRELEASED.fullmatch(revision) is not None


def _opened(file: Path) -> sqlite3.Connection:
    """Return a connection that can write nothing; raises sqlite3.Error for a file that is not a database.

    It sees what a worker has committed, also while that worker writes: readers of a log that is written ahead wait for
    nobody. It is closed soon, since the log is not emptied while somebody reads it.
    """
    # A path may hold what an address gives a meaning to.
    address = f"file:{quote(str(file.absolute()))}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=_WAIT_S)
