"""Access control lists and the user's attributes of files, for tests that keep and restore them."""

import os
import struct
from pathlib import Path

import pytest

ACCESS = "system.posix_acl_access"
DEFAULT = "system.posix_acl_default"
_NOBODY_NAMED = 0xFFFFFFFF


def access_list(user: int, rights: int) -> bytes:
    """Let one more user do this, and nobody else but the owner anything; the mode then shows it as the group's."""
    entries = [(0x01, 7), (0x02, rights), (0x04, 0), (0x10, rights), (0x20, 0)]
    named = {0x02: user}
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", kind, may, named.get(kind, _NOBODY_NAMED)) for kind, may in entries
    )


def give(path: Path, name: str, value: bytes) -> None:
    """Set an attribute; the test is skipped where the file system has none."""
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"no {name} on this file system: {error.strerror}")


def attributes(root: Path) -> dict[str, tuple[int, dict[str, bytes]]]:
    """The mode and all attributes of everything below a directory, and of itself."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_mode,
            {name: os.getxattr(path, name) for name in sorted(os.listxattr(path))},
        )
        for path in (root, *sorted(root.rglob("*")))
    }
