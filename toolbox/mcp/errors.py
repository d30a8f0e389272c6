"""What an MCP or HTTP error says about a call: refused, not sent, or unknown outcome."""

from dataclasses import replace
from typing import Any

from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
)

from backstay.errors import OutcomeUnknown
from backstay.shown import message_line
from toolbox.mcp.http_transport import HttpExchange
from toolbox.providers.answer import Answer, refused
from toolbox.providers.provider import NotSent

TOO_LARGE = 1_000_001
"""Our own code for an answer over the cap; no server sends it."""
MALFORMED = 1_000_002
"""Our own code for an answer that is no JSON-RPC."""

_UNSENT = frozenset({401, 403, 407, 429})
_LOCAL = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT, TOO_LARGE, MALFORMED})
_LOCAL_OVER_HTTP = _LOCAL | {PARSE_ERROR, INVALID_REQUEST}
_BEFORE_EXECUTION = frozenset({PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS})


def of_protocol_error(code: int, message: str, exchange: HttpExchange | None) -> Answer:
    """Return the server's own refusal as an answer.

    Raises NotSent when the server proved that the tool never saw the request, and OutcomeUnknown for all else.
    """
    if exchange is not None and exchange.status is not None:
        return _over_http(code, message, exchange)
    if exchange is not None or code in _LOCAL:
        raise OutcomeUnknown(message_line(exchange.fault if exchange and exchange.fault else message))
    return _refused(code, message)


def of_fault(error: BaseException) -> Exception:
    """Return the error for anything else that is not an answer, with exception groups unwrapped."""
    error = unwrap(error)
    if isinstance(error, OutcomeUnknown | NotSent):
        return error
    return OutcomeUnknown(f"the answer cannot be used: {describe_fault(error)}")


def of_status(status: int) -> str:
    """Return why a server that answers with this HTTP status cannot be used."""
    if status == 401:
        return "needs login: the server answered HTTP 401; give it valid credentials under `headers`"
    return f"the server refused the connection with HTTP {status}"


def unwrap(error: Any) -> Any:
    """Return the first error within groups of groups."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def describe_fault(error: Any) -> str:
    """Return one line on an error without quoting a payload."""
    error = unwrap(error)
    name = type(error).__name__
    if name in {"ValidationError", "RuntimeError"}:  # both quote what the server sent
        return f"it does not fit the protocol or the tool's output schema ({name})"
    return message_line(f"{name}: {error}" if str(error) else name)


def _over_http(code: int, message: str, exchange: HttpExchange) -> Answer:
    status = exchange.status or 0
    if not exchange.answered and status == 401:
        raise NotSent(of_status(401), login=True)
    if not exchange.answered and status in _UNSENT:
        raise NotSent(f"HTTP {status}: the server refused the request", retry_after_s=exchange.retry_after_s)
    if not exchange.answered and status >= 300:
        raise OutcomeUnknown(f"HTTP {status} without an answer")
    if exchange.fault:
        raise OutcomeUnknown(message_line(exchange.fault))
    if status >= 500 and code not in _BEFORE_EXECUTION:
        raise OutcomeUnknown(f"HTTP {status}: {message_line(message)}")
    if not exchange.answered and code in _LOCAL_OVER_HTTP:
        raise OutcomeUnknown(f"HTTP {status} without a usable answer")
    return _refused(code, message)


def _refused(code: int, message: str) -> Answer:
    return replace(refused(message), may_have_acted=code not in _BEFORE_EXECUTION)
