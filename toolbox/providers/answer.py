"""The answer of a tool, as plain JSON.

An answer is read as any usual host reads it: content that is there counts, however it is wrapped, and nothing is
dropped for a detail. Text stays text; only objects and lists are read as JSON. An operator's templates alone see the
value of a string that is one, such as `null` or `42`.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from backstay.data_files import data_beside
from backstay.shown import message_block, message_line
from backstay.tools.execution import JailUse
from toolbox.providers.elicitation import InputRequired
from toolbox.providers.json_safe import as_written, json_safe
from toolbox.providers.label import NOTHING, Label, label_of

BESIDE = "_content"
"""Where text, pictures and links stand that came beside structured content and say more than it."""
_OF_THE_PROTOCOL = frozenset({"_meta", "content", "isError", "resultType", "structuredContent", "toolResult"})
_WIRE = {"is_error": "isError", "structured_content": "structuredContent", "tool_result": "toolResult"}
"""The fields of a result as servers in Python write them that know no other names."""
_BY_FIELD = {"text": "text", "resource": "resource", "uri": "resource_link"}
"""What a part is that does not say it, by a field of it."""
_NAMES_OF_TEXT = ("text", "value", "content")
_COMPARED = 400_000
"""How many characters of structured content are compared with the text beside it."""
_PARTS = 1000
_LONGEST_SCALAR = 4000
_WORDS = data_beside(__file__)
_WITHHELD, _LOST, _ARGUMENTS, _UNSENT = (
    re.compile(_WORDS[kind]) for kind in ("withheld", "lost", "arguments", "unsent")
)
_BEGINNING, _END = 8000, 2000
"""How many characters of a refusal are looked at: a traceback tells the cause at its end."""
_OF_BYTES = frozenset({"image", "audio", "video", "file", "blob", "binary"})
_FROM_URLS = str.maketrans("-_", "+/")
_PLACES = ("uri", "url")
_LONGEST_PLACE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """Hold what a server says of a task that has not ended, by which it answered a call."""

    id: str = field(repr=False)
    """A reader who knows it can read the task and end it, so that it is kept like a secret."""
    poll_s: float
    """After how long the server wants to be asked again."""
    ttl_s: float | None = None
    """For how long after it began the server keeps it; None where it sets no end."""
    said: str = ""
    """How far it is, in the server's words, on one line."""
    refused: str = ""
    """Why it cannot go on here; empty where it can."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold what a tool answered: its data, or one line with the reason why it refused."""

    success: bool
    data: Any = None
    error: str | None = None
    reason: str | None = field(default=None, compare=False)
    """The same with its line breaks and at more length, where it says more than the line."""
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    """Pictures, sounds and other bytes, by the sha256 that stands for them in the data."""
    cached: bool = False
    """Whether it is the answer of an earlier call."""
    may_have_acted: bool = False
    """Whether an error may have come after the tool had taken effect."""
    stated: bool = False
    """Whether the tool said beside its data that it succeeded, as a program does by its exit code."""
    left_nothing: bool = False
    """Whether a call that failed is certain to have left nothing behind."""
    question: InputRequired | None = None
    """What the server wants to know before it answers; None when it has answered."""
    task: TaskState | None = None
    """The task by which the server answers later; None when it has answered."""
    used: JailUse | None = field(default=None, compare=False)
    """What the jail of a command used."""
    label: Label = NOTHING
    """What its server says of who may read it, and how far it can be trusted."""
    scalar: bool = False
    """Whether the data is a string that may stand for a value, as a server has nothing but text to say it with."""

    @property
    def meant(self) -> Any:
        """Return the data as an operator's templates see it."""
        return scalar_of(self.data) if self.scalar else self.data


def refused(reason: str) -> Answer:
    """Return the answer of a tool that refused."""
    line, block = message_line(reason), message_block(reason)
    error = line or "the tool reported an error without a reason"
    return Answer(success=False, error=error, reason=None if block == line else block)


def may_follow_act(reason: str) -> bool:
    """Return whether the words of a refusal leave open whether the call took effect.

    Its server keeps back what the tool answered, or has lost the answer of what it called for it.
    """
    if len(reason) > _BEGINNING + _END:
        reason = f"{reason[:_BEGINNING]}\n{reason[-_END:]}"
    if _WITHHELD.search(reason) is not None:
        return True
    return _ARGUMENTS.match(reason) is None and _LOST.search(_UNSENT.sub("", reason)) is not None


def answer_of(said: Mapping[str, Any]) -> Answer:
    """Return the answer that the result of a call holds: structured content, else its parts, else all it holds."""
    files: dict[str, bytes] = {}
    said = {_WIRE.get(name, name): value for name, value in said.items() if _WIRE.get(name) not in said}
    failed = _is_true(said.get("isError"))
    if said.get("content") is None and (wrapped := said.get("toolResult")) is not None:
        # As the first revision of the protocol had it.
        said = {**said, **(wrapped if isinstance(wrapped, dict) else {"content": wrapped})}
    parts, scalar = parts_of(said.get("content")), False
    structured = json_safe(said.get("structuredContent"))
    if structured is not None:
        data = _with_beside(structured, parts, files)
    elif parts:
        data = _data(parts, files)
        scalar = isinstance(data, str)
    else:
        rest = {key: value for key, value in said.items() if key not in _OF_THE_PROTOCOL}
        told = next(iter(rest.values())) if len(rest) == 1 else rest
        data = json_safe(told) if rest else None
    label = label_of([said.get("_meta"), *_metas_in(parts)])
    if not (failed or _is_true(said.get("isError"))):
        return Answer(success=True, data=data, files=files, label=label, scalar=scalar)
    reason = "\n".join(text for part in parts if (text := _text(part)) is not None)
    if not reason and data:
        reason = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)[:4000]
    told: Any = {"data": data, "files": files, "label": label, "scalar": scalar}
    return replace(refused(reason), may_have_acted=may_follow_act(reason), **told)


def _metas_in(parts: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """Yield the `_meta` of parts, and of the resources in them."""
    for part in parts:
        yield part.get("_meta")
        if isinstance(resource := part.get("resource"), dict):
            yield resource.get("_meta")


def _is_true(flag: Any) -> bool:
    return flag is True or flag == 1 or (isinstance(flag, str) and flag.strip().lower() == "true")


def parts_of(content: Any) -> list[dict[str, Any]]:
    """Return the parts of an answer that say something, each as an object."""
    listed = content if isinstance(content, list) else [content]
    parts: list[dict[str, Any]] = []
    for part in listed:
        match part:
            case None:
                continue
            case dict():
                parts.append(part)
            case str():
                parts.append({"type": "text", "text": part})
            case _:
                parts.append({"type": "text", "text": json.dumps(json_safe(part), ensure_ascii=False)})
    return [part for part in parts if _says_something(part)]


def _says_something(part: dict[str, Any]) -> bool:
    """Return whether a part is more than the frame of a string that is missing."""
    return _kind(part) != "text" or any(
        value is not None for key, value in part.items() if key not in {"type", "_meta", "annotations"}
    )


def _kind(part: dict[str, Any]) -> str:
    said = part.get("type")
    if isinstance(said, str) and said:
        return said
    if "data" in part and isinstance(mime := part.get("mimeType"), str):
        return mime.partition("/")[0]
    return next((kind for key, kind in _BY_FIELD.items() if key in part), "")


def _text(part: dict[str, Any]) -> str | None:
    """Return the text of a text part, under whichever name; None for every other part."""
    return text_in(part) if _kind(part) == "text" else None


def text_in(part: Mapping[str, Any]) -> str | None:
    """Return the text that a part or a resource holds, under whichever name; None without any."""
    text = next((part[name] for name in _NAMES_OF_TEXT if part.get(name) is not None), None)
    if text is None:
        return None
    return json_safe(text) if isinstance(text, str) else json.dumps(json_safe(text), ensure_ascii=False)


def _data(parts: list[dict[str, Any]], files: dict[str, bytes]) -> Any:
    texts = [_text(part) for part in parts]
    if all(text is not None for text in texts):
        return parsed("\n".join(text for text in texts if text is not None))
    if len(parts) == 1 and not _kind(parts[0]):
        return json_safe(parts[0])
    return [_part(part, files) for part in parts]


def _part(part: dict[str, Any], files: dict[str, bytes]) -> Any:
    if (text := _text(part)) is not None:
        return parsed(text)
    kind = _kind(part)
    if not kind:
        return json_safe(part)
    if kind == "resource" and isinstance(found := part.get("resource"), dict):
        shown = {"type": "resource", "uri": _plain(found.get("uri")), "mime": _plain(found.get("mimeType"))}
        if (said := text_in(found)) is not None:
            return shown | {"text": said}
        return shown | (_file(found["blob"], shown["mime"], files) if "blob" in found else {})
    if kind == "resource_link":
        told = {key: _plain(part.get(key)) for key in ("name", "title", "description")} | {"bytes": part.get("size")}
        link = {"type": kind, "uri": _plain(part.get("uri")), "mime": _plain(part.get("mimeType"))}
        return json_safe(link | {key: value for key, value in told.items() if value is not None})
    shown = {"type": json_safe(kind), "mime": _plain(part.get("mimeType"))}
    if kind not in {"image", "audio"}:
        # Another kind than the protocol's: all that it says is shown, and only bytes are kept apart.
        known = {"type", "data", "mimeType", "_meta", "annotations"}
        shown = {**json_safe({key: value for key, value in part.items() if key not in known}), **shown}
    for key in _PLACES:
        if isinstance(part.get(key), str):
            shown[key] = _plain(part[key][:_LONGEST_PLACE])
    if "data" not in part:
        return shown
    if isinstance(data := part["data"], str) and data[:8].lower().startswith(("http://", "https://")):
        # Where the bytes are, in place of the bytes.
        return shown | {"uri": _plain(data[:_LONGEST_PLACE])}
    if not _is_bytes(kind, part.get("mimeType")) or not isinstance(data, str | None):
        return shown | {"data": parsed(data) if isinstance(data, str) else json_safe(data)}
    return shown | _file(data, shown["mime"], files)


def _is_bytes(kind: str, mime: Any) -> bool:
    """Return whether the data of such a part is written in base64."""
    if kind in {"image", "audio"} or not isinstance(mime, str):
        return kind in _OF_BYTES
    return not mime.startswith("text/") and "json" not in mime


def _plain(value: Any) -> Any:
    return json_safe(value) if value is None or isinstance(value, str | int | float) else None


def _file(encoded: Any, mime: Any, files: dict[str, bytes]) -> dict[str, Any]:
    """Keep the bytes apart and return what stands for them."""
    try:
        data = decoded(encoded if isinstance(encoded, str) else "", mime)
    except ValueError:
        return {"bytes": 0, "fault": "it is not base64"}
    name = hashlib.sha256(data).hexdigest()
    files[name] = data
    return {"bytes": len(data), "sha256": name}


def decoded(text: str, mime: Any) -> bytes:
    """Return the bytes of base64 as servers write it; raises ValueError for any other text.

    It may be that of URLs, lack its padding, be broken into lines, or be part of a `data:` URL.
    """
    if text[:5].lower() == "data:":
        head, _, text = text.partition(",")
        if not head.lower().endswith(";base64"):
            raise ValueError("a URL that holds its data as it is")
    text = "".join(text.split())
    plain, rest = text.translate(_FROM_URLS), len(text) % 4
    if plain == text and not rest:
        return base64.b64decode(text, validate=True)
    return _decoded_loosely(text, plain, rest, textual=isinstance(mime, str) and not _is_bytes("", mime))


def _decoded_loosely(text: str, plain: str, rest: int, *, textual: bool) -> bytes:
    """Return the bytes of base64 in the letters of URLs or without padding, which many plain texts look like."""
    data = base64.b64decode(plain if "=" in plain else plain + "=" * (-rest % 4), validate=True)
    mixed = plain != text and ("+" in text or "/" in text)
    # A writer of base64 fills the last group with zeros.
    if mixed or (rest and base64.b64encode(data[len(plain) // 4 * 3 :]).decode().rstrip("=") != plain[-rest:]):
        raise ValueError("it only looks like base64")
    if textual:
        data.decode()
    return data


def _with_beside(structured: Any, parts: list[dict[str, Any]], files: dict[str, bytes]) -> Any:
    """Return structured content with what came beside it, without texts that only repeat it."""
    texts = [_text(part) for part in parts]
    whole = [text for text in texts if text is not None]
    if not parts or (len(whole) == len(parts) and parsed("\n".join(whole)) == structured):
        return structured
    known = _repeated(structured)
    left = [part for part, text in zip(parts, texts, strict=True) if text is None or not _repeats(text, known)]
    if not left:
        return structured
    beside = [_part(part, files) for part in left]
    if not isinstance(structured, dict):
        return {"value": structured, BESIDE: beside}
    return {**structured, _free(structured): beside}


def _repeats(text: str, known: frozenset[str]) -> bool:
    return not text.strip() or _canonical(parsed(text)) in known or _canonical(text.strip()) in known


def _repeated(structured: Any) -> frozenset[str]:
    """Return what a string may repeat: all of the content, each of its values, and each item of its lists."""
    found = [structured]
    if isinstance(structured, dict):
        for value in list(structured.values())[:_PARTS]:
            found += [value, *(value[:_PARTS] if isinstance(value, list) else ())]
    dumped, left = set[str](), _COMPARED
    for value in found:
        text = _canonical(value)
        left -= len(text)
        if left < 0:
            break
        dumped |= {text, _canonical(as_written(value))}
    return frozenset(dumped)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _free(taken: Iterable[str]) -> str:
    name = BESIDE
    while name in taken:
        name = f"_{name}"
    return name


def parsed(text: str) -> Any:
    """Return the object or list that a string is; every other text stays as it is, to the last digit."""
    if text[:64].lstrip()[:1] not in {"{", "["}:
        return text
    try:
        found = json.loads(text)
        return json_safe(found) if isinstance(found, dict | list) else text
    except (ValueError, RecursionError):
        return text


def scalar_of(text: str) -> Any:
    """Return the value that a string stands for; a number only if it says no more than the number does."""
    if len(text) > _LONGEST_SCALAR:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    match value:
        case None | bool():
            return value
        case str():
            return json_safe(value)
        case int() | float() if json.dumps(value) == text.strip():
            return value
        case _:
            return text
