"""What a tool answered, as plain JSON."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from mcp.types import CallToolResult

from toolbox.plain import plain

_KEPT = 8 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold what a tool answered: its data, or the one line that says why it refused."""

    success: bool
    data: Any = None
    error: str | None = None


def refused(reason: str) -> Answer:
    """Return the answer that stands for a refusal."""
    return Answer(success=False, error=one_line(reason) or "the tool reported an error without a reason")


def one_line(text: str) -> str:
    """Return the text as one line of at most 500 characters."""
    line = " ".join(text[:4000].split())
    return line if len(line) <= 500 else line[:497] + "..."


def answer_of(result: CallToolResult) -> Answer:
    """Return the structured content, else the text read as JSON when it is JSON, else the text."""
    if result.is_error:
        texts = [part.text for part in result.content if part.type == "text"]
        reason = "\n".join(texts) or (_dump(result.structured_content) if result.structured_content else "")
        return Answer(success=False, data=_parts(result.content), error=refused(reason).error)
    if result.structured_content is not None:
        return Answer(success=True, data=plain(result.structured_content))
    return Answer(success=True, data=_parts(result.content))


def _parts(content: Any) -> Any:
    if not content:
        return None
    if all(part.type == "text" for part in content):
        return _parse("\n".join(part.text for part in content))
    return [_part(part) for part in content]


def _part(part: Any) -> Any:
    match part.type:
        case "text":
            return _parse(part.text)
        case "image" | "audio":
            return {"type": part.type, "mime": part.mime_type, **_binary(part.data)}
        case "resource":
            found = part.resource
            shown = {"type": "resource", "uri": str(found.uri), "mime": found.mime_type}
            return shown | ({"text": found.text} if hasattr(found, "text") else _binary(found.blob))
        case _:
            return {"type": part.type, "uri": str(getattr(part, "uri", "")), "mime": getattr(part, "mime_type", None)}


def _binary(encoded: str) -> dict[str, Any]:
    if len(encoded) > _KEPT * 4 // 3 + 4:
        return {"bytes": len(encoded) * 3 // 4 - encoded[-2:].count("=")}
    try:
        return {"bytes": len(base64.b64decode(encoded, validate=True)), "base64": encoded}
    except (binascii.Error, ValueError):
        return {"bytes": 0}


def _parse(text: str) -> Any:
    if text[:64].lstrip()[:1] not in set('{["-0123456789tfn'):
        return text
    try:
        return plain(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _dump(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False)[:4000]
