"""Rewrite a stream of server-sent events so that each event holds one message that any client can read."""

from codecs import BOM_UTF8

from mcp.types import JSONRPCError, JSONRPCResponse, RequestId

from toolbox.mcp.wire import cut_off, dumped, messages_of

OF_JSON = (b"{", b"[")
"""With what a message begins."""
_COMMENT = b": "


class _LineSplitter:
    """Split a stream at ends of lines of every kind, of which two chunks may share one."""

    def __init__(self) -> None:
        self._after_return = False

    def split(self, chunk: bytes, begun: bytes = b"") -> list[bytes]:
        """Return the lines of a chunk, of which the first goes on behind what has begun, and the last has no end."""
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        self._after_return = self._after_return or chunk.endswith(b"\r")
        return (begun + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


class EventEnds:
    """Tell where a stream of events may pause: behind an event, and behind a comment that stands between events.

    Many servers keep a stream open by comments alone, with no empty line behind them.
    """

    def __init__(self) -> None:
        """Begin before the first line."""
        self._splitter = _LineSplitter()
        self._line = b""
        """The first byte of a line that has not ended."""
        self._within = False
        """Whether an event has begun and not ended."""

    def reached_in(self, chunk: bytes) -> bool:
        """Return whether a chunk reaches such a place, and go on behind it."""
        *lines, rest = self._splitter.split(chunk, self._line)
        self._line = rest[:1]
        reached = False
        for line in lines:
            self._within = bool(line) and (self._within or not line.startswith(b":"))
            reached = reached or not self._within
        return reached


class EventReader:
    """Take a stream apart as it comes, and put it together again event by event; its cost stays linear."""

    def __init__(self, asked: RequestId | None, charset: str | None = None) -> None:
        """Read answers to one request, or to all when none is named."""
        self._asked = asked
        self._charset = charset
        self._line: list[bytes] = []
        self._fields: list[bytes] = []
        self._data: list[bytes] = []
        self._named = b""
        self._begun = self._bare = False
        """`_bare`: whether the stream is a message as it is, in place of events."""
        self._splitter = _LineSplitter()
        self.refused = False
        """Whether the server answered the request with an error."""

    def feed(self, chunk: bytes) -> bytes:
        """Return what the chunk completes."""
        lines = self._splitter.split(chunk)
        found: list[bytes] = []
        for line in lines[:-1]:
            self._line.append(line)
            found.append(self._whole(b"".join(self._line)))
            self._line = []
        if lines[-1]:
            self._line.append(lines[-1])
        return b"".join(found)

    def end(self) -> bytes:
        """Return the last event, when the stream ended without an empty line behind it."""
        line, self._line = b"".join(self._line), []
        last = self._whole(line) if line else b""
        self._bare = False
        return last + self._whole(b"")

    def _whole(self, line: bytes) -> bytes:
        if not self._begun:
            line = line.removeprefix(BOM_UTF8)
            self._begun = bool(line.strip())
            # A stream that answers no request has no end, up to which a message could be kept.
            self._bare = self._asked is not None and line.lstrip()[:1] in OF_JSON
        if self._bare:
            self._data.append(line)
            return b""
        if not line:
            return self._event()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"":
                return line + b"\n"
            case b"data":
                self._data.append(value)
            case _:
                self._named = value if name == b"event" else self._named
                self._fields.append(line)
        return b""

    def _event(self) -> bytes:
        fields, data, named = self._fields, b"\n".join(self._data), self._named.strip()
        had_data = bool(self._data)
        self._fields, self._data, self._named = [], [], b""
        if not fields and not had_data:
            return b""
        if named not in {b"", b"message"} or not data.strip():
            return _written(fields, [data] if had_data else [])
        messages = messages_of(data, self._charset)
        answers = [message for message in messages if isinstance(message, JSONRPCResponse | JSONRPCError)]
        if self._asked is not None and answers:
            answer = next((answer for answer in answers if str(answer.id) == str(self._asked)), answers[0])
            self.refused = isinstance(answer, JSONRPCError)
            answer.id = self._asked
            messages = [m for m in messages if m is answer or not isinstance(m, JSONRPCResponse | JSONRPCError)]
        if messages:
            return b"".join(_written(fields, [dumped(message)]) for message in messages)
        # A client would take what is not a message for the end of its request.
        return _written(fields, [data]) if cut_off(data) is not None else _written(fields, [])


def _written(fields: list[bytes], data: list[bytes]) -> bytes:
    lines = [*fields, *(b"data: " + line for item in data for line in item.split(b"\n"))]
    return b"\n".join([*lines, b"", b""]) if lines else _COMMENT + b"\n\n"
