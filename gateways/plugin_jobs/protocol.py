"""The protocol of the daemon: newline-delimited JSON, one object a line."""

import json
import math
import os
import threading
from typing import Any, NamedTuple

MOST_LINE = 1024 * 1024
"""Bytes of one request."""
USUAL_S = 60.0
MOST_S = 600.0
_LONGEST_ID = 200
_LARGEST_ID = 10**18

BAD_JSON = "bad_json"
NOT_FOUND = "not_found"
TIMEOUT = "timeout"
OUTCOME_UNKNOWN = "outcome_unknown"
REJECTED = "rejected"
ENGINE_UNAVAILABLE = "engine_unavailable"
ID_CONFLICT = "id_conflict"


class RequestInvalid(Exception):
    """A request cannot be carried out; the message is the `error` of its answer."""


class Request(NamedTuple):
    """Hold one line of the client."""

    id: str | int
    command: Any
    payload: dict[str, Any]


def read_request(line: bytes) -> Request | None:
    """Return the request of a line; None for what is no JSON, no object, or has no id to answer to."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    match found.get("id"):
        case str() as named if 0 < len(named) <= _LONGEST_ID:
            pass
        case int() as named if not isinstance(named, bool) and abs(named) < _LARGEST_ID:
            pass
        case _:
            return None
    payload = found.get("payload")
    return Request(named, found.get("command"), payload if isinstance(payload, dict) else {})


def read_timeout(payload: dict[str, Any]) -> float:
    """Return for how many seconds a job may run, from its start. Raises RequestInvalid."""
    given = payload.get("timeout")
    if given is None:
        return USUAL_S
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
    if not is_number or not 0 < given <= MOST_S:
        raise RequestInvalid(f"timeout: must be a number of seconds, above 0 and at most {MOST_S:g}")
    return float(given)


class Output:
    """Write answers, whole lines only, from any thread."""

    def __init__(self, file: int) -> None:
        """Write to an open file of the operating system."""
        self._file = file
        self._lock = threading.Lock()
        self.broken = False
        """Whether nobody reads any more."""

    def send(self, id: str | int | None, status: str, payload: Any) -> None:  # noqa: A002 - the protocol's word
        """Write one answer."""
        self._write({"id": id, "status": status, "payload": payload})

    def announce(self, status: str) -> None:
        """Write a line that answers no request."""
        self._write({"status": status})

    def _write(self, answer: dict[str, Any]) -> None:
        # Escaped, so that no character of a plugin ends a line or cannot be encoded.
        left = json.dumps(answer).encode("ascii") + b"\n"
        with self._lock:
            try:
                while left and not self.broken:
                    left = left[os.write(self._file, left) :]
            except OSError:
                self.broken = True
