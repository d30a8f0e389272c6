"""Files named by what they hold."""

import re
from pathlib import Path

from backstay.errors import ArgumentsInvalid
from system.files import make_private_directory, sync, write_whole

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
        """Write the file durably before its ref is stored: a ref in the database must never outlive its file."""
        path = self._path(ref)
        new_directory = not path.parent.is_dir()
        make_private_directory(path.parent)
        write_whole(path, data)
        if new_directory:
            sync(path.parent.parent)

    def _path(self, ref: str) -> Path:
        if not _REF.fullmatch(ref):
            shown = repr(ref) if len(ref) <= 80 else repr(ref[:77]) + "..."
            raise ArgumentsInvalid(f"no stored result {shown}: a ref is 40 hexadecimal digits")
        return self._root / ref[:2] / ref[2:]
