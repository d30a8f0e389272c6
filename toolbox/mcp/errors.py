"""What an MCP or HTTP error says about a call: refused, not sent, or unknown outcome."""

import json
import re
from dataclasses import replace
from typing import Any

from mcp import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    URL_ELICITATION_REQUIRED,
)
from mcp.types.version import SUPPORTED_PROTOCOL_VERSIONS
from pydantic import ValidationError

from backstay.errors import OutcomeUnknown
from backstay.shown import message_line, one_line
from toolbox.mcp.http_transport import UNSENT, HttpExchange
from toolbox.mcp.wire import MALFORMED, TOO_LARGE
from toolbox.providers.answer import Answer, may_follow_act, refused
from toolbox.providers.json_safe import json_safe
from toolbox.providers.provider import NotSent

_LOCAL = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT, TOO_LARGE, MALFORMED})
_LOCAL_OVER_HTTP = _LOCAL | {PARSE_ERROR, INVALID_REQUEST}
_MAY_PASS = frozenset({408, 421, 423, 425, 429})
"""Refusals of HTTP that another try may not meet."""
_UNKNOWN_REVISION = re.compile(r"Unsupported protocol version from the server: (.*)", re.DOTALL)
_PLACES = 3
_DATA = 1000
"""So much of an error's data is told."""
_BEFORE_EXECUTION = frozenset(
    {
        PARSE_ERROR,
        INVALID_REQUEST,
        METHOD_NOT_FOUND,
        INVALID_PARAMS,
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        URL_ELICITATION_REQUIRED,
    }
)


def of_protocol_error(code: int, message: str, exchange: HttpExchange | None) -> Answer:
    """Return the server's own refusal as an answer.

    Raises NotSent when the server proved that the tool never saw the request, and OutcomeUnknown for all else.
    """
    if exchange is not None and exchange.status is not None:
        return _over_http(code, message, exchange)
    if exchange is not None or code in _LOCAL:
        raise OutcomeUnknown(message_line(exchange.fault if exchange and exchange.fault else message))
    return _refused(code, message)


def worded(error: MCPError) -> str:
    """Return the message of an error, and what its data says beside it: many messages name no cause."""
    data = error.error.data
    said = data if isinstance(data, str) else json.dumps(json_safe(data), ensure_ascii=False)
    if data in (None, "", [], {}) or said in error.message:
        return error.message
    return f"{error.message}: {said[:_DATA]}"


def of_fault(error: BaseException) -> Exception:
    """Return the error for anything else that is not an answer, with exception groups unwrapped."""
    error = unwrap(error)
    if isinstance(error, OutcomeUnknown | NotSent):
        return error
    return OutcomeUnknown(f"the answer cannot be used: {describe_fault(error)}")


def of_status(status: int, error: object = None) -> str:
    """Return why a server that answers with this HTTP status cannot be used, in its own words where it has some."""
    if status == 401:
        return (
            "needs login: the server answered HTTP 401; give it valid credentials under `headers`, or `auth`, so that "
            "people sign in"
        )
    said = f": {message_line(error.message, 200)}" if isinstance(error, MCPError) and error.message else ""
    return f"the server refused the connection with HTTP {status}{said}"


def cause_of(error: BaseException, exchange: HttpExchange) -> str:
    """Return why a request found no answer, from what was seen of it and what the MCP client says."""
    said = describe_fault(error)
    if exchange.fault:
        return message_line(exchange.fault)
    return f"HTTP {exchange.status}: {said}" if (exchange.status or 0) >= 300 else said


def is_lasting(exchange: HttpExchange, code: int) -> bool:
    """Return whether the same request would meet the same fault again."""
    status = exchange.status or 0
    # The MCP client says so itself of what can be no answer to any request.
    impossible = code == INVALID_REQUEST and not exchange.answered and status < 400
    return exchange.unreadable or impossible or (300 <= status < 500 and status not in _MAY_PASS)


def unwrap(error: Any) -> Any:
    """Return the first error within groups of groups."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def describe_fault(error: Any) -> str:
    """Return one line on an error without quoting a payload."""
    error = unwrap(error)
    name = type(error).__name__
    if isinstance(error, ValidationError):
        faults = [
            f"{'.'.join(map(str, fault['loc'][-3:]))}: {fault['msg']}" for fault in error.errors(include_input=False)
        ]
        return message_line(f"it does not fit the protocol ({'; '.join(faults[:_PLACES])})", 300)
    if isinstance(error, RuntimeError):  # it may quote what the server sent
        if (found := _UNKNOWN_REVISION.match(str(error))) is not None:
            known = ", ".join(SUPPORTED_PROTOCOL_VERSIONS)
            revision = one_line(found[1], 40)
            return f"it speaks revision {revision!r} of the protocol, which is not known here; known are {known}"
        return f"it does not fit the protocol ({name})"
    if isinstance(error, MCPError):
        supported = error.error.data.get("supported") if isinstance(error.error.data, dict) else None
        revisions = (
            f" (it speaks {one_line(', '.join(map(str, supported)), 80)})" if isinstance(supported, list) else ""
        )
        return message_line(f"{error.message or name}{revisions}")
    return message_line(f"{name}: {error}" if str(error) else name)


def _over_http(code: int, message: str, exchange: HttpExchange) -> Answer:
    status = exchange.status or 0
    if not exchange.answered and status == 401:
        raise NotSent(of_status(401), login=True)
    if not exchange.answered and status in UNSENT:
        said = f": {message_line(message, 200)}" if exchange.worded else ""
        raise NotSent(f"HTTP {status}: the server refused the request{said}", retry_after_s=exchange.retry_after_s)
    if not exchange.answered and status >= 300:
        # Of a redirect the MCP client names where it leads; of others it knows no more than their status.
        why = f": {message_line(message, 200)}" if status < 400 or exchange.worded else ""
        raise OutcomeUnknown(f"HTTP {status} without an answer{why}")
    if exchange.fault:
        raise OutcomeUnknown(message_line(exchange.fault))
    if status >= 500 and code not in _BEFORE_EXECUTION:
        raise OutcomeUnknown(f"HTTP {status}: {message_line(message)}")
    if not exchange.answered and code in _LOCAL_OVER_HTTP:
        why = "" if code == PARSE_ERROR else f": {message_line(message, 200)}"  # that of the parser quotes a payload
        raise OutcomeUnknown(f"HTTP {status} without a usable answer{why}")
    return _refused(code, message)


def _refused(code: int, message: str) -> Answer:
    may_have_acted = code not in _BEFORE_EXECUTION or may_follow_act(message)
    return replace(refused(message), may_have_acted=may_have_acted)
