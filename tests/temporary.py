"""Where tests write: in memory where there is room, since thousands of their commits would wait for the disk.

What a killed process has written is in the kernel's hands in both places; no test takes the power away.
"""

import os
from pathlib import Path

MEMORY = Path("/dev/shm")
NEEDED = 4 * 1024**3
"""Many times what all tests of a run hold at one moment."""
_AVAILABLE = "MemAvailable:"


def keep_in_memory() -> None:
    """Have pytest, and all that asks for a temporary folder, write into memory, unless somebody has named a place."""
    if not {"TMPDIR", "PYTEST_DEBUG_TEMPROOT"} & os.environ.keys() and _has_room():
        os.environ.update(TMPDIR=str(MEMORY), PYTEST_DEBUG_TEMPROOT=str(MEMORY))


def _has_room() -> bool:
    try:
        found = os.statvfs(MEMORY)
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith(_AVAILABLE)), 0)
    # Tests run programs that they have written.
    runs_programs = not found.f_flag & os.ST_NOEXEC
    return runs_programs and min(found.f_bavail * found.f_frsize, free) >= NEEDED


__all__ = ["keep_in_memory"]
