"""Learn from what an endpoint refuses: which form to send next, and when there is none left to try."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from activities.endpoints.dialect import PLAIN, Dialect
from activities.model.functions import NAMES
from activities.model.message import OWN
from activities.model.refusals import Refusal, media_refused, numbers_in, own_words
from activities.model.schemas import called
from activities.model.shaping import LIMIT, shaped
from backstay.canonical import canonical

LEAST_ANSWER = 200
"""Tokens of an answer that can hold a call; a shorter one is cut off, and what was asked is paid for nothing."""
LEAST_CONTEXT = 2048
"""Tokens that hold the engine's own functions and a task; no model that takes functions takes less."""
MOST_LESSONS = 12
"""How many forms are tried for one request; none of them is billed."""
_LIMITS = ("max_completion_tokens", "max_tokens", "none")
_CONTENTS = ("null", "empty", "absent", "filled")
Guesses = tuple[Mapping[str, Any], ...]
GUESSES: Guesses = (
    {"content": ""},
    {"roles": "bridged"},
    {"limit": ""},
    {"opaque": False},
    {"roles": "alternating", "system": "first"},
    {"ids": "short"},
)
"""What is tried, one after another, where an endpoint refuses a request and does not say why."""
NATIVE_GUESSES: Guesses = ({"opaque": False},)
"""The same for the APIs of vendors, in which a library takes care of the form."""
_NOT_TAKEN = re.compile(
    r"unsupported|not (?:be )?(?:supported|permitted|allowed|accepted|recogni[sz]ed|valid|a valid)|unrecogni[sz]ed"
    r"|unknown|unexpected|extra|additional propert|invalid|forbidden|cannot|deprecated|does(?: not|n't) support"
    r"|no longer"
)
_CHOICE = re.compile(r"input should be ['\"]")
"""Pydantic's words for a value that is none of those that it names: these say nothing of what is refused."""
_STREAM = re.compile(r"\bstream(?:s|ed|ing)?\b")
EFFORT = "reasoning_effort"
_EFFORT = re.compile(r"reasoning[._ ]?effort|\beffort\b")
_THINKING = re.compile(rf"{_EFFORT.pattern}|thinking")
"""What the APIs of vendors call it."""
_PLACE = re.compile(
    r"(?:tools|function_?declarations|functions)\W{1,4}(\d+)(?!\W{1,4}(?:function_?declarations|tools))"
)


@dataclass
class Lessons:
    """Hold how a request is put, and learn from each refusal of it."""

    dialect: Dialect
    guesses: Guesses = GUESSES
    tries: int = 0
    guessed: int = 0
    sure: Dialect | None = None
    """The form before anything was guessed."""
    known: list[Dialect] = field(default_factory=list[Dialect])
    """The forms that were refused."""
    given: Dialect = PLAIN
    """How the endpoint is spoken to before anything was learned."""

    def learns(self, refusal: Refusal, request: dict[str, Any], *, guess: bool = False) -> bool:
        """Take another form that the words of a refusal ask for; return whether there is one.

        `guess`: where the words ask for none, try what most often helps.
        """
        for lesson in self._lessons(refusal, request):
            if self._takes(lesson, request):
                return True
        while guess and self.guessed < len(self.guesses):
            lesson = self.guesses[self.guessed]
            self.guessed += 1
            # Each by itself: a change that did not help is not part of how the endpoint is spoken to.
            self.sure = self.dialect = self.sure or self.dialect
            if self._takes(self._next(lesson), request):
                return True
        return False

    def leaves_out(self, refusal: Refusal, request: dict[str, Any]) -> bool:
        """Leave out the pictures or PDFs that a refusal may be about; return whether there are any."""
        said = own_words(refusal, canonical(request))
        return any(self._takes({name: False}, request) for name in media_refused(said))

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
        said = own_words(refusal, canonical(request))
        if "stream" in refusal.lesson:
            # Nothing else has to go: it is taken together with a stream.
            yield refusal.lesson
        if refusal.cause in {"answer_limit", "too_many_functions"}:
            yield from self._bounded(refusal, request)
        if refusal.cause == "function_schema":
            yield from self._of_functions(said, request)
        yield from self._of_fields(said, request)
        if self._is_stream_refused(refusal, said):
            # Behind a gateway another endpoint may answer than the one that has taught this.
            yield {"stream": False}
        if refusal.cause == "form":
            yield self._next(refusal.lesson)
            yield from refusal.then

    def _is_stream_refused(self, refusal: Refusal, said: str) -> bool:
        """Return whether a refusal names streams, for which the endpoint is asked by what was learned alone."""
        if not self.dialect.stream or self.given.stream or "stream" in refusal.lesson:
            return False
        return _STREAM.search(said) is not None and _NOT_TAKEN.search(said) is not None

    def _bounded(self, refusal: Refusal, request: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield a limit that leaves room for what no run can do without."""
        numbers = numbers_in(refusal, canonical(request))
        if refusal.cause == "answer_limit":
            longest = numbers.get("answer_tokens") or int(request[LIMIT]) // 2
            if longest >= LEAST_ANSWER:
                yield {"answer_tokens": longest}
            return
        tools = shaped(request, self.dialect).get("tools", ())
        # The engine's own functions come first; one more has to have room, else the model is asked in another way.
        least = sum(tool["function"]["name"] in NAMES for tool in tools) + 1
        known = numbers.get("functions", len(tools))
        most = known if known < len(tools) else max(least, len(tools) // 2)
        if most >= least:
            yield {"functions": most}

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
        is_choice = _CHOICE.search(said) is not None
        names_effort = (_EFFORT if is_choice else _THINKING).search(said) is not None
        if _NOT_TAKEN.search(said) is None and not (is_choice and names_effort):
            return
        sent = shaped(request, self.dialect)
        limit = self.dialect.limit
        if _holds(said, limit) and limit in sent:
            yield self._next({"limit": ""})
        fields = sorted(_opaque_in(sent["messages"]) | sent.keys() & {"stream_options", EFFORT})
        if named := [name for name in fields if _holds(said, name)]:
            yield {"without": named}
        elif EFFORT in sent and names_effort:
            yield {"without": [EFFORT]}


def _holds(said: str, name: str) -> bool:
    return re.search(rf"(?<![a-z0-9_]){re.escape(name.lower())}(?![a-z0-9_])", said) is not None


def _opaque_in(messages: list[dict[str, Any]]) -> set[str]:
    """Return the names of the fields that are given back to an endpoint as it sent them."""
    found = {name for message in messages for name in message}
    for call in (call for message in messages for call in message.get("tool_calls", ())):
        found |= call.keys() | call["function"].keys()
    return found - OWN


def _named(said: str, names: list[str]) -> list[str]:
    """Return the functions that a refusal names: by their places, or by their names."""
    places = [int(place) for place in _PLACE.findall(said)]
    by_place = [names[place] for place in dict.fromkeys(places) if place < len(names)]
    return by_place or [name for name in names if _holds(said, name)]
