"""The bytes of files that snapshots hold, each once, under their hash."""

import hashlib
import os
import secrets
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from backstay.errors import SnapshotDamaged, StoreUnavailable
from sandbox.snapshots.files import FILE, at_once, chunks, shown, write_sparse
from system.files import NEW_FILE, sync

_IN_MEMORY = 1 << 20


@contextmanager
def disk_faults(folder: Path, fails: str = "snapshots cannot be kept in") -> Generator[None]:
    """Turn a full or broken disk into StoreUnavailable, which names what fails and the folder."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"{fails} {shown(str(folder))}: {error.strerror}; free space there or repair the disk"
        ) from error


class SnapshotBlobs:
    """Keep the bytes of files. Bytes that `keep` took can be read after `commit`, and are on the disk then."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; one process at a time may keep, commit or sweep."""
        self._folder = folder
        self._blobs = folder / "blobs"
        self.unfinished = folder / "writing"
        self._pending: dict[str, Path] = {}

    def prepare(self) -> None:
        """Make the folders, and remove what a process left half written that was killed."""
        for folder in (self._blobs, self.unfinished):
            folder.mkdir(mode=0o700, exist_ok=True)
        for left in self.unfinished.iterdir():
            left.unlink()
        self._pending.clear()

    def keep(self, opened: int, size: int) -> str:
        """Take the first `size` bytes of an open file and return their hash."""
        if size <= _IN_MEMORY:
            data = b"".join(chunks(opened, size))
            digest = hashlib.sha256(data).hexdigest()
            if not self._has(digest, len(data)):
                self._pending[digest] = self._write((data,))[1]
            return digest
        digest, path = self._write(chunks(opened, size))
        if self._has(digest, path.stat().st_size):
            path.unlink()
        else:
            self._pending[digest] = path
        return digest

    def commit(self) -> None:
        """Make everything that was taken durable; a blob gets its name only once its bytes are on the disk."""
        if not self._pending:
            return
        with disk_faults(self._folder):
            at_once(sync, self._pending.values())
            for digest, path in self._pending.items():
                path.rename(self._blobs / digest)
            sync(self._blobs)
        self._pending.clear()

    def copy(self, digest: str, into: int) -> None:
        """Write the bytes to a new file. Raises SnapshotDamaged when they are gone or others; use nothing then."""
        write_sparse(into, self._read(digest))

    def require(self, digest: str) -> None:
        """Raise SnapshotDamaged when the bytes are gone or others."""
        for _ in self._read(digest):
            pass

    def unreachable(self, reachable: Collection[str]) -> list[Path]:
        """Return every blob that is not among the reachable ones."""
        return [blob for blob in self._blobs.iterdir() if blob.name not in reachable]

    def _has(self, digest: str, size: int) -> bool:
        if digest in self._pending:
            return True
        try:
            return (self._blobs / digest).lstat().st_size == size
        except FileNotFoundError:
            return False

    def _read(self, digest: str) -> Iterator[bytes]:
        total = hashlib.sha256()
        try:
            opened = os.open(self._blobs / digest, FILE)
        except OSError as error:
            raise SnapshotDamaged(
                f"blob {digest} of a snapshot is gone ({error.strerror}); bring it back from a backup"
            ) from error
        try:
            for data in chunks(opened, os.fstat(opened).st_size):
                total.update(data)
                yield data
        finally:
            os.close(opened)
        if total.hexdigest() != digest:
            raise SnapshotDamaged(f"blob {digest} of a snapshot holds other bytes; bring it back from a backup")

    def _write(self, data: Iterable[bytes]) -> tuple[str, Path]:
        path = self.unfinished / secrets.token_hex(8)
        total = hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            for part in data:
                total.update(part)
                yield part

        with disk_faults(self._folder):
            opened = os.open(path, NEW_FILE, 0o600)
            try:
                write_sparse(opened, hashed())
            finally:
                os.close(opened)
        return total.hexdigest(), path
