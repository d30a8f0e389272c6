"""What a tool answered, as plain JSON."""

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from mcp.types import CallToolResult

from backstay.shown import message_line
from toolbox.providers.elicitation import InputRequired
from toolbox.providers.json_safe import json_safe


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold what a tool answered: its data, or one line with the reason why it refused."""

    success: bool
    data: Any = None
    error: str | None = None
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    """Pictures, sounds and other bytes, by the sha256 that stands for them in the data."""
    cached: bool = False
    """Whether it is the answer of an earlier call."""
    may_have_acted: bool = False
    """Whether an error may have come after the tool had taken effect."""
    left_nothing: bool = False
    """Whether a call that failed is certain to have left nothing behind."""
    question: InputRequired | None = None
    """What the server wants to know before it answers; None when it has answered."""


def refused(reason: str) -> Answer:
    """Return the answer of a tool that refused."""
    return Answer(success=False, error=message_line(reason) or "the tool reported an error without a reason")


def answer_of(result: CallToolResult) -> Answer:
    """Return the structured content, else the text read as JSON when it is JSON, else the text."""
    files: dict[str, bytes] = {}
    if result.is_error:
        texts = [part.text for part in result.content if part.type == "text"]
        reason = "\n".join(texts) or (_dump(result.structured_content) if result.structured_content else "")
        return Answer(success=False, data=_parts(result.content, files), error=refused(reason).error, files=files)
    if result.structured_content is not None:
        return Answer(success=True, data=json_safe(result.structured_content))
    return Answer(success=True, data=_parts(result.content, files), files=files)


def _parts(content: Any, files: dict[str, bytes]) -> Any:
    if not content:
        return None
    if all(part.type == "text" for part in content):
        return _parse("\n".join(part.text for part in content))
    return [_part(part, files) for part in content]


def _part(part: Any, files: dict[str, bytes]) -> Any:
    match part.type:
        case "text":
            return _parse(part.text)
        case "image" | "audio":
            return {"type": part.type, "mime": part.mime_type, **_file(part.data, files)}
        case "resource":
            found = part.resource
            shown = {"type": "resource", "uri": str(found.uri), "mime": found.mime_type}
            return shown | ({"text": found.text} if hasattr(found, "text") else _file(found.blob, files))
        case "resource_link":
            told = {"name": part.name, "title": part.title, "description": part.description, "bytes": part.size}
            link = {"type": "resource_link", "uri": str(part.uri), "mime": part.mime_type}
            return json_safe(link | {key: value for key, value in told.items() if value is not None})
        case _:
            return {"type": str(part.type)}


def _file(encoded: str, files: dict[str, bytes]) -> dict[str, Any]:
    """Keep the bytes apart and return what stands for them."""
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return {"bytes": 0, "fault": "it is no base64"}
    name = hashlib.sha256(data).hexdigest()
    files[name] = data
    return {"bytes": len(data), "sha256": name}


def _parse(text: str) -> Any:
    if text[:64].lstrip()[:1] not in set('{["-0123456789tfn'):
        return text
    try:
        return json_safe(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _dump(value: Any) -> str:
    return json.dumps(json_safe(value), ensure_ascii=False)[:4000]
