"""How an endpoint wants to be spoken to, where endpoints that call themselves compatible differ.

A dialect is shipped for known vendors, named in models.yaml, or learned from what an endpoint refuses.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from backstay.data_files import data_beside

MOST_NAMES = 200
_JOINED = frozenset({"without", "fill", "plain", "hidden"})
"""What is added to when more is learned; everything else is replaced."""


class Dialect(BaseModel):
    """Say in which form an endpoint takes a request; the default is that of OpenAI."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: Literal["max_completion_tokens", "max_tokens", "none"] = "max_completion_tokens"
    """What the limit of an answer is called; none: it takes no limit."""
    roles: Literal["any", "bridged", "alternating"] = "any"
    """bridged: an answer of the model stands between that of a tool and what a person says; alternating: besides, no
    two messages of one role follow each other."""
    system: Literal["any", "system", "first", "user"] = "any"
    """system: it is called so; first: one message, before all others; user: a part of what the user says first."""
    content: Literal["null", "empty", "absent", "filled"] = "null"
    """What is in place of words beside calls; filled: a full stop."""
    ids: Literal["any", "short"] = "any"
    """short: nine letters and digits, each id once."""
    parallel: bool = True
    """Whether one message may hold several calls."""
    answers: bool = True
    """Whether it accepts answers of tools in the history; otherwise what to do is asked for as JSON."""
    opaque: bool = True
    """Whether what it put beside its answers is given back to it."""
    stream: bool = False
    """Whether it answers in streams only, so that it is asked for one even when nobody reads along."""
    images: bool = True
    """Whether it takes pictures, where the model does."""
    files: bool = True
    """The same of PDFs."""
    without: frozenset[str] = Field(default=frozenset(), max_length=MOST_NAMES)
    """Fields that it does not take, of requests or of the messages that are given back."""
    fill: frozenset[str] = Field(default=frozenset(), max_length=MOST_NAMES)
    """Fields of its answers that it wants back even from those that never had them."""
    plain: frozenset[str] = Field(default=frozenset(), max_length=MOST_NAMES)
    """Functions whose schema it takes only in a simple form; `*` is all of them."""
    hidden: frozenset[str] = Field(default=frozenset(), max_length=MOST_NAMES)
    """Functions that it does not take in any form."""
    functions: int | None = Field(default=None, ge=1)
    """How many functions it takes at most."""
    context_tokens: int | None = Field(default=None, ge=256)
    """What a request and its answer may take together."""
    answer_tokens: int | None = Field(default=None, ge=1)
    """How long an answer may be at most."""

    def taught(self, lesson: Mapping[str, Any]) -> Self:
        """Return the dialect with what was learned; anything that is not part of a dialect is left out."""
        if not lesson:
            return self
        known = {name: value for name, value in lesson.items() if name in type(self).model_fields}
        for name in _JOINED & known.keys():
            known[name] = [*getattr(self, name), *known[name]][-MOST_NAMES:]
        try:
            return self.model_validate({**self.model_dump(), **known})
        except (ValidationError, TypeError):
            return self

    def lesson(self, before: Self) -> dict[str, Any]:
        """Return what this dialect says that another one does not, as JSON."""
        if self is before:
            return {}
        own, others = self.model_dump(mode="json"), before.model_dump(mode="json")
        found = {name: value for name, value in own.items() if value != others[name]}
        return {name: sorted(value) if name in _JOINED else value for name, value in found.items()}


PLAIN = Dialect()


@cache
def shipped(address: str) -> Dialect:
    """Return the dialect of a known vendor, by the address of its endpoint; else the default."""
    parts = urlsplit(address)
    host, port = parts.hostname or "", _port(parts)
    for row in data_beside(__file__)["vendors"]:
        is_known = any(host == known or host.endswith(f".{known}") for known in row["hosts"])
        if is_known or (port in row.get("ports", ()) and parts.scheme == "http"):
            return PLAIN.taught(row["dialect"])
    return PLAIN


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        return None


def told(lesson: Mapping[str, Any]) -> str:
    """Return a lesson in one line for people."""
    parts = [
        f"{name}: {', '.join(sorted(map(str, value))) if isinstance(value, list | tuple | frozenset) else value}"
        for name, value in lesson.items()
    ]
    return "; ".join(parts)
