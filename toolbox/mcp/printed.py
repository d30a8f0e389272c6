"""Say why a server ended at its start, or was not understood, by what it printed; the log holds no secrets."""

import re
from pathlib import Path

from backstay.shown import message_line

_TAIL = 8192
_AFTER_A_CAUSE = re.compile(
    r"\s+(?:at|File|code:|errno:|syscall:) |\s*[\])}^~]+[,;]?\s*$|Node\.js v\d|note: run with|exit status \d"
    r"|goroutine \d|\t/|npm (?:error|ERR!) (?:A complete log|\s*$|[\w ]*\bNote that)"
)
"""What runtimes print behind the cause of an end: places in code, hints, and the ends of brackets."""
_CAUSE = re.compile(r"(?:error|exception|fatal|panic)", re.IGNORECASE)
_UNREAD = re.compile(
    r"not JSON-RPC on stdout: "
    r"(?P<said>\s*\{.*\"(?:result|error)\"\s*:.*|\s*\"(?:jsonrpc|result|error)\"\s*:.*|\s*Content-Length:.*)"
)
"""A line in the log that is nearly a message: without its version, of several lines, or behind a header."""


class ServerOutput:
    """Read what a server has printed since it was started."""

    def __init__(self, log: Path | None) -> None:
        """Take what is in the log by now for that of an earlier start."""
        self._log = log
        self._begun = _size(log)

    def last_words(self) -> str:
        """Return why the server ended, and where the rest stands, in words after "it exited"."""
        if self._log is None or _size(self._log) == self._begun:
            return "; it printed nothing"
        if (lines := self._lines()) is None:
            return "; its output cannot be read"
        return f": {message_line(_cause_in(lines), 200)}; see its output in {self._log}"

    def unread(self) -> str:
        """Return what the server wrote as an answer and nobody can read; empty where it wrote nothing of the kind."""
        found = [said for line in self._lines() or () if (said := _UNREAD.match(line))]
        if not found:
            return ""
        line = message_line(found[0]["said"], 120)
        return f'each answer must be one line of JSON with "jsonrpc": "2.0", and it wrote {line!r}'

    def _lines(self) -> list[str] | None:
        """Return the last lines; None when they cannot be read."""
        if self._log is None:
            return None
        try:
            size = _size(self._log)
            with self._log.open("rb") as file:
                # A log that is full begins anew.
                file.seek(max(self._begun if size > self._begun else 0, size - _TAIL))
                return file.read(_TAIL).decode("utf-8", "replace").splitlines()
        except OSError:
            return None


def _cause_in(lines: list[str]) -> str:
    """Return the line that says why a process ended: the last one, unless it only follows the cause."""
    said = [line for line in reversed(lines) if line.strip()]
    if not said or _AFTER_A_CAUSE.match(said[0]) is None:
        return said[0] if said else ""
    causes = [line for line in said if _AFTER_A_CAUSE.match(line) is None]
    return next((line for line in causes if _CAUSE.search(line)), (causes or said)[0])


def _size(log: Path | None) -> int:
    try:
        return 0 if log is None else log.stat().st_size
    except OSError:
        return 0
