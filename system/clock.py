"""Time that nobody sets: the seconds since this host was started, and which start that was."""

import time
from pathlib import Path

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def uptime() -> float:
    """Return seconds that only ever grow, equally for all processes of a host; for deadlines and their ends.

    Where the system tells, they also grow while the host sleeps.
    """
    return time.clock_gettime(_CLOCK)


def boot() -> str | None:
    """Name the start of this host from which `uptime` counts, or return None where the system does not tell.

    Processes for which it counts differently, in a time namespace, find another name.
    """
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/time").readlink()
    except OSError:
        return None
    return f"{start} {namespace}"
