"""Read what the answers of native APIs say of themselves, whole or in events: errors, what they used, and their end."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from activities.endpoints.event_lines import lines_of
from activities.endpoints.usage import usage_in
from activities.model.refusals import AnswerBroken, AnswerRefused, fault_in, has_error, tells_of_error
from activities.model.streaming import as_error
from backstay.budgets.usage import ModelUsage
from backstay.data_files import data_beside
from backstay.errors import ModelUnavailable

_LINES = tuple(sign.encode() for sign in "\x85\u2028\u2029")
"""What ends a line for some readers of events, and may be in a string."""
_OWN = frozenset({"type", "object", "candidates", "usageMetadata", "promptFeedback", "modelVersion", "responseId"})
"""What is in every answer and event of these APIs; without any of it, words are those of an error."""
_DETAILS = {"cached": "cached_tokens", "written": "cache_write_tokens"}


@dataclass
class AnswerEvents:
    """Take what arrives of one answer."""

    api: str
    used: dict[str, Any] = field(default_factory=dict[str, Any])
    is_over: bool = False
    is_empty: bool = True

    async def of(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the events of a body in one form; raises ModelUnavailable for one that breaks off, or as `note`."""
        async for line in lines_of(parts):
            if line.startswith(b"error:"):
                # llama.cpp
                self.note(as_error(line.removeprefix(b"error:").strip()))
            data = line.removeprefix(b"data:").strip()
            if not line.startswith(b"data:") or data in {b"", b"[DONE]"}:
                continue
            event = json.loads(data)
            self.note(event)
            kind = str(event.get("type", "")).encode()
            if any(sign in data for sign in _LINES):
                data = json.dumps(event).encode()
            yield (b"event: " + kind + b"\n" if kind else b"") + b"data: " + data + b"\n\n"
        if not self.is_over:
            raise ModelUnavailable("the model endpoint broke off its answer", unbilled=False)

    def note(self, event: Any) -> None:
        """Take one event, or an answer that comes whole.

        Raises AnswerRefused where it tells of an error and nothing came before it, else AnswerBroken.
        """
        inner = next((event[name] for name in ("response", "message") if isinstance(event.get(name), dict)), event)
        told = next((holder for holder in (event, inner) if has_error(holder)), None)
        is_foreign = not event.keys() & _OWN and fault_in(event) is not None
        if told is not None or is_foreign or tells_of_error(event):
            fault = event if told is None else told
            if self.is_empty:
                raise AnswerRefused(fault)
            raise AnswerBroken(fault)
        if (reason := _at(event, "promptFeedback.blockReason")) and not event.get("candidates"):
            said = f"the prompt was blocked: {reason} {_at(event, 'promptFeedback.blockReasonMessage') or ''}"
            raise AnswerRefused({"message": said.strip(), "usage": event.get("usageMetadata")})
        self.is_empty = False
        for holder in (event, inner):
            found = holder.get("usage") or holder.get("usageMetadata")
            if isinstance(found, dict):
                self.used |= {name: value for name, value in found.items() if value is not None}
        self.is_over = self.is_over or event.get("type") in _table(self.api)["ends"] or _is_last(event)

    def usage(self) -> tuple[ModelUsage, bool]:
        """Return what the answer used, and whether the vendor said so."""
        table = _table(self.api)
        counts = {name: self._sum(table[name]) for name in ("prompt", "cached", "written", "output", "reasoning")}
        details = {name: counts[own] for own, name in _DETAILS.items()}
        said = {
            "prompt_tokens": counts["prompt"],
            "completion_tokens": counts["output"],
            "prompt_tokens_details": details,
            "completion_tokens_details": {"reasoning_tokens": counts["reasoning"]},
        }
        return usage_in({"usage": said})

    def _sum(self, places: list[str]) -> Any:
        """Return a count; None where there is none, or one that is not a count."""
        found = [value for place in places if (value := _at(self.used, place)) is not None]
        if not found or not all(isinstance(value, int) and value >= 0 for value in found):
            return None
        return sum(found)


@cache
def _table(api: str) -> Mapping[str, list[str]]:
    return data_beside(__file__)[api]


def _at(holder: Any, place: str) -> Any:
    for name in place.split("."):
        holder = holder.get(name) if isinstance(holder, dict) else None
    return holder


def _is_last(event: Mapping[str, Any]) -> bool:
    """Return whether Gemini says in an event why the answer ends."""
    found = event.get("candidates")
    candidates = found if isinstance(found, list) else []
    return any(_at(each, "finishReason") for each in candidates) or bool(_at(event, "promptFeedback.blockReason"))
