"""The pipes to the host, over which a program's calls leave the jail and their answers come back."""

import os
import sys
from json import JSONDecoder
from typing import Any

# High enough for a program's own files to have the numbers they have elsewhere, and below what is allowed.
_OUT = min(64, os.sysconf("SC_OPEN_MAX")) - 3
_IN = _OUT - 1
_PREFIX = 4


class HostPipe:
    """Send frames and receive their answers."""

    def __init__(self) -> None:
        """Take the control pipes over; from then on standard input is at its end, and output goes where errors go."""
        os.dup2(0, _IN, inheritable=False)
        os.dup2(1, _OUT, inheritable=False)
        reading, writing = os.pipe()
        os.dup2(reading, 0)
        os.close(reading)
        os.close(writing)
        os.dup2(2, 1)
        # A program may replace these later; text that is flushed and parsed here stays the same.
        self._streams = (sys.stdout, sys.stderr)
        self._parse = JSONDecoder().decode
        sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue] - a real text stream

    def send(self, text: str) -> None:
        """Send one frame, after everything that was printed before it."""
        for stream in (*self._streams, sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # noqa: S112 - a program may have closed or replaced its streams
                continue
        data = text.encode()
        left = memoryview(len(data).to_bytes(_PREFIX, "big") + data)
        while left:
            left = left[os.write(_OUT, left) :]

    def receive(self) -> Any:
        """Return the next frame; without a host there is nothing left to do."""
        data = self._read(int.from_bytes(self._read(_PREFIX), "big"))
        return self._parse(data.decode())

    def _read(self, size: int) -> bytearray:
        """Read so that memory looks the same afterwards in however many pieces the bytes come."""
        data = bytearray(size)
        left = memoryview(data)
        while left:
            came = os.readv(_IN, [left])
            if not came:
                os._exit(0)
            left = left[came:]
        return data
