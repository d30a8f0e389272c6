"""Keep what a worker has learned of endpoints in a file of its home, which other processes read and change."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Generic, TypeVar

from backstay.frozen import Frozen

Entry = TypeVar("Entry", bound=Frozen)


class HomeFile(Generic[Entry]):
    """Hold entries by their keys, the latest last; in memory only where there is no file."""

    def __init__(self, file: Path | None, kind: type[Entry], *, most: int) -> None:
        """Keep at most the given number of entries."""
        self._file = file
        self._kind = kind
        self._most = most
        self._known: dict[str, Entry] = {}
        self._read_at = 0

    def entries(self) -> dict[str, Entry]:
        """Return what is kept; another process may have changed it meanwhile."""
        if self._file is None:
            return self._known
        try:
            written = self._file.stat().st_mtime_ns
        except OSError:
            written = 0
        if written != self._read_at:
            self._known, self._read_at = self._read(self._file), written
        return self._known

    def keep(self, entries: Mapping[str, Entry]) -> None:
        """Put these entries in place of those that are kept; of too many, the latest stay."""
        self._known = {key: entries[key] for key in [*entries][-self._most :]}
        if self._file is not None:
            self._write(self._file)
            self._read_at = self._file.stat().st_mtime_ns

    def _read(self, file: Path) -> dict[str, Entry]:
        """Return the entries that the file holds; none where it cannot be read."""
        try:
            return {key: self._kind.model_validate(entry) for key, entry in json.loads(file.read_bytes()).items()}
        except (OSError, ValueError, AttributeError):
            return {}

    def _write(self, file: Path) -> None:
        unfinished = file.with_name(f".{file.name}-{os.getpid()}")
        unfinished.touch(mode=0o600)
        unfinished.write_text(json.dumps({key: entry.plain() for key, entry in self._known.items()}), encoding="utf-8")
        unfinished.replace(file)
