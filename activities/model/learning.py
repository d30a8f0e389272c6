"""Learn from what an endpoint refuses: which form to send next, and when there is none left to try."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from activities.endpoints.dialect import Dialect
from activities.model.functions import NAMES
from activities.model.refusals import Refusal, text_in
from activities.model.schemas import called
from activities.model.shaping import LIMIT, shaped

MOST_LESSONS = 12
"""How many forms are tried for one request; none of them is billed."""
_LIMITS = ("max_completion_tokens", "max_tokens", "none")
_CONTENTS = ("null", "empty", "absent")
_GUESSES: tuple[Mapping[str, Any], ...] = (
    {"content": ""},
    {"roles": "bridged"},
    {"limit": ""},
    {"opaque": False},
    {"roles": "alternating", "system": "first"},
    {"ids": "short"},
)
"""What is tried, one after another, where an endpoint refuses a request and does not say why."""
_NOT_TAKEN = re.compile(
    r"unsupported|not (?:be )?(?:supported|permitted|allowed|accepted|recogni[sz]ed|valid|a valid)|unrecogni[sz]ed"
    r"|unknown|unexpected|extra|additional propert|invalid|forbidden|cannot|deprecated|does(?: not|n't) support"
    r"|no longer"
)
_PLACE = re.compile(
    r"(?:tools|function_?declarations|functions)\W{1,4}(\d+)(?!\W{1,4}(?:function_?declarations|tools))"
)


@dataclass
class Lessons:
    """Hold how a request is put, and learn from each refusal of it."""

    dialect: Dialect
    tries: int = 0
    guessed: int = 0
    sure: Dialect | None = None
    """The form before anything was guessed."""
    known: list[Dialect] = field(default_factory=list[Dialect])
    """The forms that were refused."""

    def learns(self, refusal: Refusal, request: dict[str, Any], *, guess: bool = False) -> bool:
        """Take another form that the words of a refusal ask for; return whether there is one.

        `guess`: where the words ask for none, try what most often helps.
        """
        for lesson in self._lessons(refusal, request):
            if self._takes(lesson, request):
                return True
        while guess and self.guessed < len(_GUESSES):
            lesson = _GUESSES[self.guessed]
            self.guessed += 1
            # Each by itself: what did not help is no part of how the endpoint is spoken to.
            self.sure = self.dialect = self.sure or self.dialect
            if self._takes(self._next(lesson), request):
                return True
        return False

    def _takes(self, lesson: Mapping[str, Any], request: dict[str, Any]) -> bool:
        taught = self.dialect.taught(lesson)
        if self.tries >= MOST_LESSONS or taught in self.known:
            return False
        if shaped(request, taught) == shaped(request, self.dialect):
            return False
        self.known.append(self.dialect)
        self.dialect, self.tries = taught, self.tries + 1
        return True

    def _next(self, lesson: Mapping[str, Any]) -> dict[str, Any]:
        """Return a lesson with the next value where it only says that this one is refused."""
        found = dict(lesson)
        for name, values in (("content", _CONTENTS), ("limit", _LIMITS)):
            if found.get(name) == "":
                tried = {getattr(known, name) for known in (*self.known, self.dialect)}
                found[name] = next((value for value in values if value not in tried), values[-1])
        return found

    def _lessons(self, refusal: Refusal, request: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield what the words of a refusal may mean, the likeliest first."""
        said = f"{text_in(refusal.data)} {refusal.text} {refusal.data if refusal.status else ''}".lower()[:20_000]
        if refusal.cause in {"answer_limit", "too_many_functions"}:
            yield self._bounded(refusal, request)
        if refusal.cause == "function_schema":
            yield from self._of_functions(said, request)
        yield from self._of_fields(said, request)
        if refusal.cause == "form":
            yield self._next(refusal.lesson)

    def _bounded(self, refusal: Refusal, request: dict[str, Any]) -> Mapping[str, Any]:
        if refusal.cause == "answer_limit":
            known = refusal.lesson.get("answer_tokens")
            return {"answer_tokens": known or max(1, request[LIMIT] // 2)}
        sent = len(shaped(request, self.dialect).get("tools", ()))
        known = refusal.lesson.get("functions")
        return {"functions": known if known and known < sent else max(1, sent // 2)}

    def _of_functions(self, said: str, request: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield which functions are to be put simply, or to be left out where that did not help."""
        functions = shaped(request, self.dialect).get("tools", [])
        whole = {function["function"]["name"]: called(function) for function in request.get("tools", ())}
        names = _named(said, [function["function"]["name"] for function in functions])
        for name in names:
            if whole[name] not in self.dialect.plain and "*" not in self.dialect.plain:
                yield {"plain": [whole[name]]}
            elif name not in NAMES:
                yield {"hidden": [whole[name]]}
        yield {"plain": ["*"]}

    def _of_fields(self, said: str, request: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield which fields are to be left out, of those that the request holds."""
        if _NOT_TAKEN.search(said) is None:
            return
        sent = shaped(request, self.dialect)
        limit = self.dialect.limit
        if _holds(said, limit) and limit in sent:
            yield self._next({"limit": ""})
        fields = sorted(_opaque_in(sent["messages"]) | sent.keys() & {"stream_options"})
        if named := [name for name in fields if _holds(said, name)]:
            yield {"without": named}


def _holds(said: str, name: str) -> bool:
    return re.search(rf"(?<![a-z0-9_]){re.escape(name.lower())}(?![a-z0-9_])", said) is not None


def _opaque_in(messages: list[dict[str, Any]]) -> set[str]:
    """Return the names of the fields that are given back to an endpoint as it sent them."""
    own = {"role", "content", "name", "tool_calls", "tool_call_id"}
    found = {name for message in messages for name in message if name not in own}
    for call in (call for message in messages for call in message.get("tool_calls", ())):
        found |= call.keys() - {"id", "type", "function"}
        found |= call["function"].keys() - {"name", "arguments"}
    return found


def _named(said: str, names: list[str]) -> list[str]:
    """Return the functions that a refusal names: by their names, or by their places."""
    if by_name := [name for name in names if _holds(said, name)]:
        return by_name
    places = [int(place) for place in _PLACE.findall(said)]
    return [names[place] for place in dict.fromkeys(places) if place < len(names)]
