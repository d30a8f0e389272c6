"""Agree on a revision of the protocol with a server that refuses the newest one instead of naming its own."""

import re
from collections.abc import Iterator
from typing import Any

from mcp.types import ErrorData, JSONRPCRequest
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

ALIKE = {"2024-10-07": "2024-11-05"}
"""Revisions whose tools are those of another one, as other hosts take them too."""
_CODES = frozenset({-32022, -32004})
_REFUSED = re.compile(
    r"(?:unsupported|unknown|invalid|incompatible|not support(?:ed)?|mismatch).{0,40}(?:protocol|revision)"
    r"|protocol.{0,60}(?:unsupported|not supported|unknown|incompatible|mismatch)",
    re.IGNORECASE | re.DOTALL,
)
_REVISION = re.compile(r"\d{4}-\d{2}-\d{2}")
_READ = 4000


def offered_of(request: JSONRPCRequest) -> str | None:
    """Return the revision that a handshake offers; None where the request is none."""
    offered = (request.params or {}).get("protocolVersion") if request.method == "initialize" else None
    return offered if isinstance(offered, str) else None


def offering(request: JSONRPCRequest, revision: str) -> JSONRPCRequest:
    """Return the same handshake with another revision."""
    return request.model_copy(update={"params": {**(request.params or {}), "protocolVersion": revision}})


def next_revision(error: ErrorData, tried: list[str]) -> str | None:
    """Return the revision to offer after a refusal: the newest that the server names, else the next older one.

    None where something else was refused, or where there is none left that both know.
    """
    if error.code not in _CODES and _REFUSED.search(error.message[:_READ]) is None:
        return None
    named = {revision for revision in _named(error) if revision not in tried}
    if named & {*MODERN_PROTOCOL_VERSIONS}:
        return None  # the client asks for that one itself
    older = [revision for revision in HANDSHAKE_PROTOCOL_VERSIONS if revision < min(tried)]
    left = [revision for revision in older if not named or revision in named]
    return left[-1] if left else None


def _named(error: ErrorData) -> Iterator[str]:
    yield from _REVISION.findall(error.message[:_READ])
    data: dict[str, Any] = error.data if isinstance(error.data, dict) else {}
    supported = next((data[key] for key in ("supported", "supportedVersions") if key in data), None)
    for revision in supported if isinstance(supported, list) else ():
        yield str(revision)
