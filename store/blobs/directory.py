"""Files named by what they hold."""

import os
import re
import secrets
from pathlib import Path

from backstay.errors import ArgumentsInvalid
from store.private import make_private_directory

_REF = re.compile(r"[0-9a-f]{40}")


class Directory:
    """Keep files as `<first two digits>/<the other 38>`; a file appears whole and durable or not at all."""

    def __init__(self, root: Path) -> None:
        """Name the directory; it is made when something is written."""
        self._root = root

    def read(self, ref: str) -> bytes | None:
        """Return the bytes, or None. Raises ArgumentsInvalid when `ref` cannot be a ref."""
        try:
            return self._path(ref).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, ref: str, data: bytes) -> None:
        """Write beside, sync, rename, sync the directory: a ref in the database must never outlive its file."""
        path = self._path(ref)
        new_directory = not path.parent.is_dir()
        make_private_directory(path.parent)
        beside = path.parent / f".{secrets.token_hex(8)}"
        try:
            opened = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            with os.fdopen(opened, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        _sync(path.parent)
        if new_directory:
            _sync(path.parent.parent)

    def _path(self, ref: str) -> Path:
        if not _REF.fullmatch(ref):
            shown = repr(ref) if len(ref) <= 80 else repr(ref[:77]) + "..."
            raise ArgumentsInvalid(f"no stored result {shown}: a ref is 40 hexadecimal digits")
        return self._root / ref[:2] / ref[2:]


def _sync(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
