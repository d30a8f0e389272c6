"""`mcp.log`: every request and its end, one JSON object a line, redacted, and rotated by size."""

import fcntl
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_NAME = "mcp.log"
_MOST_BYTES = 5 * 1024 * 1024
_KEPT = 5
_CLOSING_S = 5.0
Redact = Callable[[Any], Any]


class JobLog:
    """Write lines in a thread of its own: the module that redacts them is loaded with the first line that needs it."""

    def __init__(self, home: Path, redactor: Callable[[], Redact], *, most_bytes: int = _MOST_BYTES) -> None:
        """Write into a folder; `redactor` returns what hides secrets in a value."""
        self._path = home / _NAME
        self._redactor = redactor
        self._most_bytes = most_bytes
        self._waiting: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._writing = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._writing.start()

    def add(self, event: str, **fields: Any) -> None:
        """Note an event; only `arguments`, `error` and `id` may hold what others wrote."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._waiting.put({"at": at, "event": event, **fields})

    def close(self) -> None:
        """Write what waits, and stop."""
        self._waiting.put(None)
        self._writing.join(_CLOSING_S)

    def _write_all(self) -> None:
        redact: Redact | None = None
        while (line := self._waiting.get()) is not None:
            if line.keys() & {"arguments", "error", "plugin"}:
                redact = redact or self._redactor()
                line = redact(line)
            try:
                self._write(json.dumps(line).encode("ascii") + b"\n")
            except OSError as error:
                sys.stderr.write(f"backstay plugins: {self._path}: cannot be written: {error.strerror}\n")

    def _write(self, line: bytes) -> None:
        # Several daemons write one file: the process that has its lock may rotate it.
        while True:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                size = os.fstat(file).st_size
                if not self._is_current(file):
                    continue
                if size == 0 or size + len(line) <= self._most_bytes:
                    os.write(file, line)
                    return
                self._rotate()
            finally:
                os.close(file)

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except FileNotFoundError:
            return False

    def _rotate(self) -> None:
        for number in range(_KEPT - 1, 0, -1):
            older = self._path.with_name(f"{_NAME}.{number}")
            if older.exists():
                older.replace(self._path.with_name(f"{_NAME}.{number + 1}"))
        self._path.replace(self._path.with_name(f"{_NAME}.1"))
