"""What a program is told of the machine: the same on every machine, since its run may go on on another one."""

import os
from collections.abc import Callable
from typing import Any

_MEMORY_PAGES = 131_072
_IMAGE = (4096, 4096, 262_144, 0, 0, 65_536, 0, 0, os.ST_RDONLY, 255, 0)
_CHANGES = 8
"""How many of the numbers of a file system count what is in it."""
_CONFIGURED = {
    "SC_NPROCESSORS_CONF": 1,
    "SC_NPROCESSORS_ONLN": 1,
    "SC_PHYS_PAGES": _MEMORY_PAGES,
    "SC_AVPHYS_PAGES": _MEMORY_PAGES,
}


def install_machine() -> None:
    """Replace the functions of the module os that tell of the machine; call it while its others are real."""
    system = os.uname()
    told = os.uname_result((system.sysname, system.nodename, "6.0.0", "#1", system.machine))
    os.uname = lambda: told
    os.cpu_count = lambda: 1
    os.sysconf = _sysconf(os.sysconf)
    for name in ("statvfs", "fstatvfs"):
        real = getattr(os, name)
        mine = _space(real, os.stat, os.lstat("/").st_dev)
        setattr(os, name, mine)
        if real in os.supports_fd:
            os.supports_fd.add(mine)


def _sysconf(real: Callable[[str | int], int]) -> Callable[[str | int], int]:
    known = {os.sysconf_names[name]: value for name, value in _CONFIGURED.items() if name in os.sysconf_names}

    def sysconf(name: str | int, /) -> int:
        """Return what the system is configured for."""
        number = os.sysconf_names.get(name, -1) if isinstance(name, str) else name
        return known[number] if number in known else real(name)

    return sysconf


def _space(real: Callable[[Any], os.statvfs_result], stat: Callable[[Any], os.stat_result], image: int) -> Any:
    def statvfs(path: Any) -> os.statvfs_result:
        """Return what a file system holds: the image, on whatever disk it lies, is full; files in /tmp count."""
        found = real(path)
        if stat(path).st_dev == image:
            return os.statvfs_result(_IMAGE)
        return os.statvfs_result((*found[:_CHANGES], 0, 255, 0))

    statvfs.__name__ = real.__name__
    return statvfs
