"""Read JSON-RPC messages as servers write them: whole, although bytes, marks or fields are a little off.

Everything here is a server's word: it is read, never believed, and whatever is not a message is left alone.
"""

import codecs
import json
import math
import re
from typing import Any

from mcp.types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    REQUEST_TIMEOUT,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from toolbox.providers.json_safe import json_safe

TOO_LARGE = 1_000_001
"""Our own code for an answer over the cap."""
MALFORMED = 1_000_002
"""Our own code for an answer that is no JSON-RPC."""
BARE = "backstay/bare"
"""The only key of a result that was not an object; the protocol knows objects alone."""
_LOCAL = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT, TOO_LARGE, MALFORMED})
"""Codes by which this side tells that no answer came; a server that writes one has answered all the same."""
_DIGITS = 4000
"""Longer whole numbers take Python for ever to read; they stay text."""
_MARKS = "\ufeff\x00 \t\r\n"
_ID_FIRST = re.compile(rb'\A\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})\s*,')
_ID_LAST = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*\}\s*\Z')
_ENVELOPE = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"')
_PART = re.compile(rb'"(method|result|error)"\s*:')
_EDGE = 200
_MOST_JOINED = 1000
"""How many messages may be on one line."""
_CHARSETS = re.compile(
    r"(?:iso-?8859-?\d+|latin-?1|cp125\d|windows-125\d|utf-16(?:-?[bl]e)?|gb18030|gbk|gb2312|big5"
    r"|shift[-_]jis|euc-(?:jp|kr)|koi8-[ru])"
)
"""Those that servers write; a codec of Python's own may take for ever."""


def messages_of(raw: bytes, charset: str | None = None) -> list[JSONRPCMessage]:
    """Return the messages that a line or a body holds; none when it holds no JSON-RPC.

    `charset`: how the bytes are to be read that are no UTF-8; without it, they become replacement characters.
    """
    try:
        messages = [jsonrpc_message_adapter.validate_json(raw, by_name=False)]
    except ValueError:
        try:
            value = read_json(raw, charset)
        except (ValueError, RecursionError):
            value = _joined(raw, charset)
        found = [_message(item) for item in (value if isinstance(value, list) else [value])]
        messages = [message for message in found if message is not None]
    for message in messages:
        if isinstance(message, JSONRPCError) and message.error.code in _LOCAL:
            message.error.code = INTERNAL_ERROR
    return messages


def read_json(raw: bytes, charset: str | None = None) -> Any:
    """Return the JSON value of the bytes, in a form that every JSON can hold; raises ValueError and RecursionError."""
    text = _text(raw, charset).strip(_MARKS)
    return json_safe(json.loads(text, strict=False, parse_float=_float, parse_int=_int))


def _joined(raw: bytes, charset: str | None) -> list[Any]:
    """Return the objects of a line on which nothing stands between them; none where anything else is on it."""
    text = _text(raw, charset).strip(_MARKS)
    found: list[Any] = []
    decoder, place = json.JSONDecoder(strict=False, parse_float=_float, parse_int=_int), 0
    while place < len(text):
        if text[place] != "{" or len(found) == _MOST_JOINED:
            return []
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return []
        found.append(json_safe(value))
        while place < len(text) and text[place] in _MARKS:
            place += 1
    return found


def answer_to(asked: RequestId, raw: bytes, charset: str | None = None) -> JSONRPCResponse | JSONRPCError | None:
    """Return the answer in a body that came for one request, under that request's id; None when it holds none."""
    answers = [m for m in messages_of(raw, charset) if isinstance(m, JSONRPCResponse | JSONRPCError)]
    answer = next((answer for answer in answers if str(answer.id) == str(asked)), answers[0] if answers else None)
    if answer is not None:
        answer.id = asked
    return answer


def as_handed_on(
    asked: RequestId, raw: bytes, charset: str | None = None
) -> tuple[JSONRPCResponse | JSONRPCError | None, bytes]:
    """Return the answer like `answer_to`, and the bytes to hand on; a result that needs no mending stays as it is."""
    try:
        message = jsonrpc_message_adapter.validate_json(raw, by_name=False)
    except ValueError:
        message = None
    if isinstance(message, JSONRPCResponse) and message.id == asked:
        return message, raw
    answer = answer_to(asked, raw, charset)
    return answer, raw if answer is None else dumped(answer)


def names(asked: RequestId, raw: bytes) -> bool:
    """Return whether the bytes hold an answer that itself names this request."""
    answers = [m for m in messages_of(raw) if isinstance(m, JSONRPCResponse | JSONRPCError)]
    return any(answer.id is not None and str(answer.id) == str(asked) for answer in answers)


def dumped(message: JSONRPCMessage) -> bytes:
    """Return the message as strict JSON in UTF-8, on one line."""
    value = message.model_dump(by_alias=True, exclude_unset=True)
    return json.dumps(json_safe(value), ensure_ascii=False, separators=(",", ":")).encode()


def cut_off(raw: bytes) -> int | None:
    """Return which request a line answers that is JSON-RPC and cannot be read; None for any other line."""
    if not raw.lstrip().startswith(b"{") or _ENVELOPE.search(raw) is None:
        return None
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and "jsonrpc" not in value:  # a log line that quotes a message
        return None
    return id_at_the_edge(raw, raw[-_EDGE:])


def id_at_the_edge(head: bytes, tail: bytes) -> int | None:
    """Return the id with which an answer begins or ends, for one that cannot be read as a whole."""
    if (part := _PART.search(head)) is not None and part[1] == b"method":  # a request, which servers may print
        return None
    found = _ID_FIRST.match(head) or _ID_LAST.search(tail)
    return None if found is None else int(found[1])


def _text(raw: bytes, charset: str | None) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    known = charset is not None and _CHARSETS.fullmatch(charset.lower()) is not None
    try:
        return raw.decode(charset if known and charset else "utf-8", "replace")
    except LookupError:
        return raw.decode("utf-8", "replace")


def _float(digits: str) -> Any:
    number = float(digits)
    return number if math.isfinite(number) else digits


def _int(digits: str) -> Any:
    return int(digits) if len(digits) <= _DIGITS else digits


def _message(value: Any) -> JSONRPCMessage | None:
    """Return the message that an object is meant to be; None without the mark of JSON-RPC, as log lines are."""
    if not isinstance(value, dict) or value.get("jsonrpc") not in ("2.0", 2, "2"):
        return None
    asked = _id(value.get("id"))
    if isinstance(method := value.get("method"), str):
        params = value.get("params")
        said: Any = {"jsonrpc": "2.0", "method": method, **({"params": params} if isinstance(params, dict) else {})}
        return JSONRPCNotification(**said) if asked is None else JSONRPCRequest(id=asked, **said)
    error = value.get("error")
    if "result" in value and asked is not None and (error is None or not (isinstance(error, dict | str) and error)):
        result = value["result"]
        return JSONRPCResponse(jsonrpc="2.0", id=asked, result=result if isinstance(result, dict) else {BARE: result})
    return None if error is None else JSONRPCError(jsonrpc="2.0", id=asked, error=_error(error))


def _id(value: Any) -> RequestId | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _error(said: Any) -> ErrorData:
    if not isinstance(said, dict):
        return ErrorData(code=INTERNAL_ERROR, message=said if isinstance(said, str) else json.dumps(said)[:_EDGE])
    code, message = said.get("code"), said.get("message")
    try:
        number = int(code)  # type: ignore[arg-type] # what is not a number raises
    except (TypeError, ValueError, OverflowError):
        number = INTERNAL_ERROR
    told = message if isinstance(message, str) else json.dumps(message or said, ensure_ascii=False)[:500]
    return ErrorData(code=number, message=told, data=said.get("data"))
