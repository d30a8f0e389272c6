"""Look whether files have access control lists, which are lost when a file is written anew."""

import os
import stat
import struct
from contextlib import suppress
from pathlib import Path

from sandbox.snapshots.files import HANDLE, opened_root

WOULD_BE_LOST = (
    "has an access control list, which would be lost; change it by a command, or remove the list with setfacl -b"
)
_ACCESS = "system.posix_acl_access"
_DEFAULT = "system.posix_acl_default"
_ENTRY = struct.Struct("<HHI")
_GROUP = 0x04
_NAMED = {0x02, 0x08}
"""Entries of users and groups by name; there is no list without one."""

Rights = frozenset[tuple[int, int, int]]


def would_lose_list(folder: int, name: str, made_in: int) -> bool:
    """Return whether a plain file gives others rights than a file would inherit that is made in a folder."""
    try:
        handle = os.open(name, HANDLE, dir_fd=folder)
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(handle).st_mode) and _rights(handle, _ACCESS) != _rights(made_in, _DEFAULT)
    finally:
        os.close(handle)


def file_would_lose_list(root: Path, path: str) -> bool:
    """Return whether the file at a path below a workspace would lose a list when it is written anew beside itself."""
    *above, name = path.split("/")
    with opened_root(root, unlocking=False) as top:
        folder = os.dup(top)
        try:
            for each in above:
                inner = os.open(each, HANDLE | os.O_DIRECTORY, dir_fd=folder)
                os.close(folder)
                folder = inner
            return would_lose_list(folder, name, folder)
        except OSError:
            # There is no such folder, so there is no file.
            return False
        finally:
            os.close(folder)


def _rights(place: int, attribute: str) -> Rights:
    """Return what a list says of others than the owner and everyone; nothing where there is no list."""
    entries: Rights = frozenset()
    # Some file systems have none.
    with suppress(OSError):
        listed = os.getxattr(f"/proc/self/fd/{place}", attribute)[4:]
        entries = frozenset(_ENTRY.iter_unpack(listed[: len(listed) // _ENTRY.size * _ENTRY.size]))
    named = any(kind in _NAMED for kind, _, _ in entries)
    return frozenset(entry for entry in entries if entry[0] in _NAMED | {_GROUP}) if named else frozenset()
