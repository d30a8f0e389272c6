"""Times of files: what is touched while a program runs is as old as the program, whenever that is."""

import os
from collections.abc import Callable
from typing import Any

from sandbox.guest.programs.clock import Clock

_DAY_NS = 86_400 * 10**9
_SETS = (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks)
_SHOWN = 10
_IN_SEQUENCE = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size")


class FileTimes:
    """Stand in for the functions that ask the kernel about a file."""

    def __init__(self, clock: Clock) -> None:
        """Take the program's start from this clock."""
        self._clock = clock
        self._image = os.lstat("/").st_dev
        # Nothing has been written yet: this is when the jail was made, by the kernel's clock. The run's clock may be
        # anywhere else.
        self._made_ns = os.lstat("/tmp").st_ctime_ns  # noqa: S108 - the jail has one of its own

    def install(self) -> None:
        """Replace them, and wherever the module says what they can do."""
        for name in ("stat", "lstat", "fstat"):
            real = getattr(os, name)
            mine = self._replaced(real)
            setattr(os, name, mine)
            for able in _SETS:
                if real in able:
                    able.add(mine)

    def _replaced(self, real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def asked(*given: Any, **named: Any) -> os.stat_result:
            return self._told(real(*given, **named))

        asked.__name__, asked.__doc__ = real.__name__, real.__doc__
        return asked

    def _told(self, facts: os.stat_result) -> os.stat_result:
        """Return the facts with times that are the same in every run; what a program itself dated far back stays."""
        start, inside = self._clock.start_ns, facts.st_dev == self._image
        recent = min(start, self._made_ns) - _DAY_NS
        known = {name: getattr(facts, name) for name in dir(facts) if name.startswith("st_")}
        modified = known["st_mtime_ns"]
        accessed = modified if inside else known["st_atime_ns"]
        for kind, age in (("mtime", modified), ("atime", accessed), ("ctime", start)):
            known[f"st_{kind}_ns"] = start if age > recent else age
            known[f"st_{kind}"] = known[f"st_{kind}_ns"] / 1e9
        whole = [known[f"st_{kind}_ns"] // 10**9 for kind in ("atime", "mtime", "ctime")]
        # Devices are numbered by the machine as they come.
        shown = [*facts[:2], 1 if inside else 2, *facts[3 : _SHOWN - 3], *whole]
        # From 3.13 on, what stands in the sequence may not be named again.
        return os.stat_result(shown, {name: value for name, value in known.items() if name not in _IN_SEQUENCE})
