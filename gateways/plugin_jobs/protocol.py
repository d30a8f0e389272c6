"""The protocol of the daemon: newline-delimited JSON, one object a line."""

import json
import math
import os
import select
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_LINE = 1024 * 1024
"""Bytes of one request."""
USUAL_S = 60.0
_LONGEST_ID = 200
_LARGEST_ID = 10**18
_PARTING_S = 2.0
"""How long the last words may wait for a client that does not read."""
_LOOK_S = 0.2

LOCAL = "backstay plugins: --local: jobs run in this process and do not survive it\n"
"""The warning at a start whose jobs are not runs of the engine."""
BAD_JSON = "bad_json"
NOT_FOUND = "not_found"
TIMEOUT = "timeout"
OUTCOME_UNKNOWN = "outcome_unknown"
REJECTED = "rejected"
ENGINE_UNAVAILABLE = "engine_unavailable"
ID_CONFLICT = "id_conflict"


def internal(error: Exception) -> str:
    """Return what is told of an error that nobody expects, whose text may hold anything."""
    return f"internal error: {type(error).__name__}"


class RequestInvalid(Exception):
    """A request cannot be carried out; the message is the `error` of its answer."""


class JobRequest(NamedTuple):
    """Hold one line of the client."""

    id: str | int
    command: Any
    payload: dict[str, Any]


def read_json(text: str | bytes) -> Any:
    """Return the value of strict JSON, without numbers that Python knows but JSON does not.

    Raises ValueError and RecursionError.
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def read_request(line: bytes) -> JobRequest | None:
    """Return the request of a line; None for what is no JSON, no object, or has no id to answer to."""
    try:
        found = read_json(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    match found.get("id"):
        case str() as named if 0 < len(named) <= _LONGEST_ID and _is_text(named):
            pass
        case int() as named if not isinstance(named, bool) and abs(named) < _LARGEST_ID:
            pass
        case _:
            return None
    payload = found.get("payload")
    return JobRequest(named, found.get("command"), payload if isinstance(payload, dict) else {})


def _is_text(found: str) -> bool:
    """Return whether a string can be encoded: JSON can name halves of characters."""
    try:
        found.encode()
    except UnicodeEncodeError:
        return False
    return True


def named_arguments(given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a job as the schema of its action takes them. Raises RequestInvalid."""
    from toolbox.plugins.arguments import read_arguments  # noqa: PLC0415 - needed with the first job

    try:
        return read_arguments(given, schema)
    except ValueError as error:
        raise RequestInvalid(f"args: {error}") from None


def timed_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an action where the timeout of a job stands among its arguments."""
    from toolbox.plugins.arguments import with_timeout  # noqa: PLC0415 - needed by MCP only

    return with_timeout(schema)


def timed_arguments(given: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """Return the arguments of a job, and the timeout that stands among them. Raises RequestInvalid."""
    from toolbox.plugins.arguments import split_timeout  # noqa: PLC0415 - needed by MCP only

    arguments, timeout = split_timeout(named_arguments(given, timed_schema(schema)), schema)
    return arguments, read_timeout({TIMEOUT: timeout})


def read_timeout(payload: dict[str, Any]) -> float:
    """Return for how many seconds a job may run, from its start. Raises RequestInvalid."""
    given = payload.get("timeout")
    if given is None:
        return USUAL_S
    from backstay.tools.tool import LONGEST_CALL_S  # noqa: PLC0415 - needed where a job says it

    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= LONGEST_CALL_S:
        raise RequestInvalid(f"timeout: must be a number of seconds, above 0 and at most {LONGEST_CALL_S:g}")
    return float(given)


class Output:
    """Write answers, whole lines only, from any thread."""

    def __init__(self, file: int) -> None:
        """Write to an open file of the operating system."""
        self._file = file
        self._lock = threading.Lock()
        self.broken = False
        """Whether nobody reads any more."""
        self._until: float | None = None

    def send(self, id: str | int | None, status: str, payload: Any) -> None:  # noqa: A002 - the protocol's word
        """Write one answer."""
        self._write({"id": id, "status": status, "payload": payload})

    def announce(self, status: str) -> None:
        """Write a line that answers no request."""
        self._write({"status": status})

    def part(self) -> None:
        """Wait no longer than a moment for a client that does not read; safe to call from a signal handler."""
        self._until = time.monotonic() + _PARTING_S

    def _write(self, answer: dict[str, Any]) -> None:
        # Escaped, so that no character of a plugin ends a line or cannot be encoded.
        left = memoryview(json.dumps(answer).encode("ascii") + b"\n")
        with self._lock:
            try:
                while left and self._can_write():
                    left = left[os.write(self._file, left[: select.PIPE_BUF]) :]
            except OSError:
                self.broken = True

    def _can_write(self) -> bool:
        """Wait until a client takes more, as much as a write of PIPE_BUF cannot block on."""
        while not self.broken:
            if select.select([], [self._file], [], _LOOK_S)[1]:
                return True
            self.broken = self._until is not None and time.monotonic() > self._until
        return False
