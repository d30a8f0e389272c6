"""Show a model the pictures and PDFs of an answer or a task, or tell it which of them it does not see.

In a request, marks stand for the bytes until it is sent: so nothing that looks through a request looks through these,
and no byte of them is counted as one of its text.
"""

import base64
import secrets
import string
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from activities.endpoints.sight import Sight
from activities.media.fitting import FittedMedia, Fitting
from backstay.task.context import MEDIA
from backstay.task.media import Media

MOST_SHOWN = 20
"""The newest pictures and PDFs of a conversation are shown; earlier ones were seen when they came."""
MOST_TOGETHER = 20_000_000
"""Bytes that they have together."""
_MARK = 44
_UNSEEN = "You do not see {what}: {why}."
_EARLIER = "it is left out, since newer ones fill the room"
Part = dict[str, Any]


@dataclass(frozen=True)
class MediaParts:
    """Hold what of the pictures and PDFs of a conversation a model is shown, by their refs."""

    marks: Mapping[str, str] = field(default_factory=dict[str, str])
    fitted: Mapping[str, FittedMedia] = field(default_factory=dict[str, FittedMedia])
    unseen: Mapping[str, str] = field(default_factory=dict[str, str])
    sight: Sight = field(default_factory=Sight)

    def tokens_in(self, content: bytes) -> int:
        """Return as how many tokens what a written request shows can be counted at most."""
        worst = self.sight.worst
        return sum(worst(self.fitted[ref].media) * content.count(mark.encode()) for ref, mark in self.marks.items())

    def filled(self, content: bytes) -> bytes:
        """Return a written request with the bytes in place of their marks."""
        for ref, mark in self.marks.items():
            if (sign := mark.encode()) in content:
                content = content.replace(sign, base64.b64encode(self.fitted[ref].data))
        return content

    def parts_of(self, item: Mapping[str, Any], whose: str, told: set[str]) -> list[Part]:
        """Return what a message holds that shows what an item has, or tells which of it is not seen.

        `told` are the refs of what was shown before in the same request; it is added to.
        """
        found: list[Part] = []
        for said in item.get(MEDIA, ()):
            media = Media.model_validate(said)
            what = f"{media.line} of {whose}"
            if media.ref in told:
                found.append({"type": "text", "text": f"{what[:1].upper()}{what[1:]} is shown above."})
                continue
            if (mark := self.marks.get(media.ref)) is None:
                why = media.fault or self.sight.takes(media) or self.unseen.get(media.ref) or _EARLIER
                found.append({"type": "text", "text": _UNSEEN.format(what=what, why=why)})
                continue
            told.add(media.ref)
            found += [{"type": "text", "text": f"This is {what}:"}, _part(self.fitted[media.ref].media, mark)]
        return found


NOTHING = MediaParts()


async def shown_in(
    items: Sequence[Mapping[str, Any]], sight: Sight, fitting: Fitting, read: Callable[[str], Awaitable[bytes]]
) -> MediaParts:
    """Return what a model is shown of the pictures and PDFs in these items; the newest count."""
    wanted = [Media.model_validate(said) for item in items for said in item.get(MEDIA, ())]
    if not wanted:
        return MediaParts(sight=sight)
    marks: dict[str, str] = {}
    fitted: dict[str, FittedMedia] = {}
    unseen: dict[str, str] = {}
    left = MOST_TOGETHER
    for media in _newest(wanted):
        if media.fault or sight.takes(media) or len(marks) == MOST_SHOWN:
            continue
        found = await fitting.fit(media, sight.side, lambda ref=media.ref: read(ref))
        if found.fault:
            unseen[media.ref] = found.fault
        elif len(found.data) <= left:
            left -= len(found.data)
            marks[media.ref], fitted[media.ref] = _mark(), found
    return MediaParts(marks, fitted, unseen, sight)


def _newest(media: Iterable[Media]) -> list[Media]:
    """Return each once, the last first."""
    return list({found.ref: found for found in reversed(list(media))}.values())


def _mark() -> str:
    """Return what stands for bytes in base64: nobody can foretell it, and it is base64 itself."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(_MARK))


def _part(media: Media, mark: str) -> Part:
    url = f"data:{media.mime};base64,{mark}"
    if media.kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": media.name or "document.pdf", "file_data": url}}


def without(messages: list[dict[str, Any]], kinds: frozenset[str]) -> list[dict[str, Any]]:
    """Return messages in which no parts of these kinds stand, since their endpoint takes none."""
    return [_without(message, kinds) for message in messages]


def _without(message: dict[str, Any], kinds: frozenset[str]) -> dict[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = [
        {"type": "text", "text": "You do not see it: the model endpoint does not take it."}
        if part["type"] in kinds
        else part
        for part in content
    ]
    return {**message, "content": parts}


def joined(first: Any, second: Any) -> Any:
    """Return the contents of two messages of one side as that of one."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_as_parts(first), *_as_parts(second)]


def _as_parts(content: Any) -> list[Part]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
