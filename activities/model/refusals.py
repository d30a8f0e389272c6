"""Read what an endpoint says when it does not answer, and recognise the cause; status and code alone say little.

The wordings are in the file beside this module: which vendor says what, and what follows from it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from activities.endpoints.usage import has_counts
from backstay.data_files import data_beside
from backstay.redaction.redactor import Redactor
from backstay.shown import one_line

Cause = Literal[
    "",
    "cut",
    "quota",
    "filtered",
    "bad_generation",
    "too_long",
    "too_many_functions",
    "function_schema",
    "no_functions",
    "no_schema",
    "answer_limit",
    "form",
    "unknown_model",
]
"""Why an endpoint does not answer; empty where nobody can tell."""
MOST_READ = 8192
MOST_TOLD = 400
LOADING_S = 10.0
"""How long is waited for a model that its endpoint is loading."""
_DEPTH = 6
_MESSAGES = ("error_msg", "error_message")
"""What holds the words of an error beside the name of its kind."""
_NO_FAULT = frozenset({"", "ok", "success", "successful", "succeeded", "none", "null", "no error"})
"""The words there where there is no error."""
_TEXTS = (
    *("message", "msg", "detail", "error", "errors", "title", "status_msg", *_MESSAGES, "base_resp", "reason"),
    *("description", "raw", "metadata", "details", "fault", "faultstring", "cause", "innererror", "Message", "text"),
)
_NUMBER = re.compile(r"\d[\d,_]*")
_MASKED = Redactor(())


@dataclass(frozen=True)
class Refusal:
    """Hold what an endpoint said in place of an answer."""

    status: int
    text: str
    """Its own words, shortened."""
    code: str = ""
    cause: Cause = ""
    lesson: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the endpoint is to be sent from now on, as far as the words say it."""
    then: tuple[Mapping[str, Any], ...] = ()
    """What the words may mean besides, for where that is how it is sent already."""
    data: Any = None
    """The body as it came."""
    redactor: Redactor = field(default=_MASKED, compare=False, repr=False)
    """Knows the key that it was asked with, which some endpoints repeat."""

    @property
    def told(self) -> str:
        """Return its words for people: one line, quoted, without what looks like a secret."""
        return f'; it says: "{one_line(self.redactor.text(self.text), MOST_TOLD)}"' if self.text else ""


@dataclass(frozen=True)
class _Wording:
    cause: Cause
    words: re.Pattern[str]
    unless: re.Pattern[str] | None
    lesson: Mapping[str, Any]
    then: tuple[Mapping[str, Any], ...]
    statuses: frozenset[int]

    def matches(self, status: int, said: str) -> bool:
        if self.statuses and status not in self.statuses:
            return False
        return self.words.search(said) is not None and (self.unless is None or self.unless.search(said) is None)


def media_refused(said: str) -> tuple[str, ...]:
    """Return which parts of messages these words refuse, as a dialect calls them."""
    rows: Mapping[str, list[str]] = data_beside(__file__)["media"]
    return tuple(name for name, words in rows.items() if any(re.search(word, said) for word in words))


@cache
def _wordings() -> tuple[_Wording, ...]:
    rows = data_beside(__file__)["wordings"]
    return tuple(
        _Wording(
            cause=row["cause"],
            words=re.compile("|".join(row["words"])),
            unless=re.compile("|".join(row["unless"])) if "unless" in row else None,
            lesson=row.get("lesson", {}),
            then=tuple(row.get("then", ())),
            statuses=frozenset(row.get("statuses", ())),
        )
        for row in rows
    )


@cache
def _numbers() -> dict[str, re.Pattern[str]]:
    return {name: re.compile("|".join(words)) for name, words in data_beside(__file__)["numbers"].items()}


def refusal_of(status: int, data: Any, redactor: Redactor = _MASKED) -> Refusal:
    """Return what a body says that holds no completion, whatever form the vendor gave it."""
    text, code = text_in(data)[:MOST_READ], code_in(data)
    said = _said(text, code, data)
    unnamed = _NAMES.sub(" ", _INPUT.sub(" ", said))
    rows = ((row, unnamed if row.cause in _FINAL else said) for row in _wordings())
    found = next((row for row, words in rows if row.matches(status, words)), None)
    if found is None and status == 413:
        lesson = _learned_numbers(said, data)
        return Refusal(status, text, code, "too_long", lesson, data=data, redactor=redactor)
    if found is None:
        return Refusal(status, text, code, data=data, redactor=redactor)
    lesson = dict(found.lesson)
    if found.cause in {"too_long", "answer_limit", "too_many_functions"}:
        lesson |= _learned_numbers(said, data)
    return Refusal(status, text, code, found.cause, lesson, found.then, data, redactor)


def _said(text: str, code: str, data: Any) -> str:
    return " ".join(f"{code} {_kinds(data)} {text}".lower().split())


_INPUT = re.compile(r"""['"]input['"]: .*?(?=\{['"]type['"]: |\Z)|\binput_value=.*?(?=, input_type=|\Z)""")
"""What Pydantic repeats of a request."""
_NAMES = re.compile(
    r"""\bcontext=\([^)]*\)|\b\w+?__\w+|['"]loc['"]: [(\[][^)\]]*"""
    r"""|\b(?:body|tools|parameters|properties)(?:[.\[]['"]?\w+['"]?\]?)+"""
    r"""|\b(?:function|tool|parameter|property|field|argument)s? (?:'[^']*'|"[^"]*"|`[^`]*`)"""
)
"""Names of functions and of what is in their schemas."""
_FINAL = frozenset[Cause]({"quota", "filtered"})
"""Causes for which nothing else is tried: names that are only repeated say nothing of them."""
_WORD = re.compile(r"\w+")
_RUN = 4
"""This many words in a row that were sent are repeated, and no words of the endpoint."""


def own_words(refusal: Refusal, sent: str) -> str:
    """Return what an endpoint says itself, in lower case: not what it repeats of what it was sent."""
    said = _INPUT.sub(" ", _said(refusal.text, refusal.code, refusal.data))
    words, known = [*_WORD.finditer(said)], _WORD.findall(sent.lower())
    runs = {tuple(known[at : at + _RUN]) for at in range(len(known) - _RUN + 1)}
    found, reached = "", 0
    for at in range(len(words) - _RUN + 1):
        if tuple(word[0] for word in words[at : at + _RUN]) in runs:
            found += said[reached : max(words[at].start(), reached)] + " "
            reached = max(reached, words[at + _RUN - 1].end())
    return found + said[reached:]


def numbers_in(refusal: Refusal, sent: str) -> dict[str, int]:
    """Return the limits that an endpoint names in words of its own."""
    return _learned_numbers(own_words(refusal, sent), refusal.data)


def text_in(data: Any) -> str:
    """Return the words of an error in any of the forms in which vendors put them."""
    return " ".join(dict.fromkeys(" ".join(words.split()) for words in _texts(data, 0) if words.strip()))


def _texts(data: Any, depth: int) -> Iterator[str]:
    if depth > _DEPTH:
        return
    match data:
        case str():
            yield from _texts_of_text(data, depth)
        case list():
            for item in data[:20]:
                yield from _texts(item, depth + 1)
        case dict():
            for name in _TEXTS:
                if name in data:
                    yield from _texts(data[name], depth + 1)
            if isinstance(wait := data.get("retryDelay"), str):
                # Gemini names the time apart from its words; with it, a quota is a rate.
                yield f"retryDelay: {wait}"
            if isinstance(place := data.get("loc"), list | tuple):
                # FastAPI names the field apart from what is wrong with it.
                yield ".".join(map(str, place[:10]))
        case _:
            pass


def _texts_of_text(text: str, depth: int) -> Iterator[str]:
    """Yield a string, or what is in it when it is itself the JSON of an error, as gateways pass it on."""
    if text.lstrip()[:1] in {"{", "["}:
        try:
            inner = [*_texts(json.loads(text), depth + 1)]
        except (ValueError, RecursionError):
            inner = []
        if inner:
            yield from inner
            return
    yield text


def code_in(data: Any) -> str:
    """Return the code of an error, in letters and digits."""
    for holder in _holders(data):
        code = holder.get("code")
        if isinstance(code, str | int) and not isinstance(code, bool) and code != "":
            return "".join(sign for sign in str(code) if sign.isalnum() or sign in "_-")[:60]
    return ""


def _kinds(data: Any) -> str:
    """Return the other short fields that name a cause."""
    return " ".join(
        str(holder[name])[:200]
        for holder in _holders(data)
        for name in ("type", "param", "status", "error_type")
        if isinstance(holder.get(name), str)
    )


def _holders(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, dict):
        return
    for name in ("error", "base_resp", "metadata"):
        if isinstance(inner := data.get(name), dict):
            yield from _holders(inner)
    yield data


def _learned_numbers(said: str, data: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, pattern in _numbers().items():
        if (match := pattern.search(said)) is not None:
            digits = next(group for group in match.groups() if group)
            found[name] = int(_NUMBER.search(digits)[0].replace(",", "").replace("_", ""))  # pyright: ignore[reportOptionalSubscript] - each pattern names digits
    for holder in _holders(data):
        # llama.cpp says it apart from its words.
        if isinstance(holder.get("n_ctx"), int):
            found["context_tokens"] = holder["n_ctx"]
    return {name: number for name, number in found.items() if 0 < number <= 10_000_000}


@cache
def _waits() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in data_beside(__file__)["waits"])


_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_in(span: str) -> float | None:
    """Return the seconds that a span such as `7.66s`, `500ms`, `1m2s` or `7` says; None when it says none."""
    parts = [*_SPAN.finditer(span.strip().lower())]
    if not parts or "".join(part[0] for part in parts) != span.strip().lower():
        return None
    return sum(float(part[1]) * _SECONDS[part[2] or ""] for part in parts)


def wait_in(text: str) -> float | None:
    """Return the seconds after which an endpoint says in words that it may be asked again."""
    said = text.lower()
    found = next((match for pattern in _waits() if (match := pattern.search(said)) is not None), None)
    if found is not None:
        return seconds_in(found[1])
    return LOADING_S if tells_of_loading(said) else None


def tells_of_loading(text: str) -> bool:
    """Return whether an endpoint says that its model is not there yet, so that none was asked."""
    return any(re.search(words, text.lower()) for words in data_beside(__file__)["loading"])


_NO_ERROR = (None, False, "")
"""What is in the place of an error where there is none."""


class AnswerRefused(Exception):
    """An answer that calls itself a success tells of an error and holds nothing else."""

    def __init__(self, data: dict[str, Any]) -> None:
        """Keep what it says."""
        super().__init__("the answer tells of an error")
        self.data = data


class AnswerBroken(Exception):
    """An endpoint tells of an error amid its answer; `data` is what it says."""

    def __init__(self, data: Any) -> None:
        """Keep what it says."""
        super().__init__("the answer was broken off")
        self.data = data


def fault_in(data: Any) -> dict[str, Any] | None:
    """Return the error that is in place of a completion in an answer that calls itself a success.

    Raises AnswerBroken where it is beside words, which are not a whole answer then.
    """
    if isinstance(data, list) and data and isinstance(data[0], dict) and "error" in data[0]:
        data = data[0]
    if not isinstance(data, dict):
        return None
    if choices := data.get("choices"):
        first = choices[0] if isinstance(choices, list) and isinstance(choices[0], dict) else {}
        if broken := next((holder for holder in (data, first) if has_error(holder)), None):
            raise AnswerBroken(broken)
        return None
    said = text_in(data).strip(" .!").lower()
    is_unanswered = said not in _NO_FAULT and not has_counts(data)
    is_fault = tells_of_error(data) or "choices" not in data or is_unanswered
    return data if is_fault and said else None


def tells_of_error(chunk: dict[str, Any]) -> bool:
    """Return whether an answer, or a chunk of one, calls itself an error and holds no words."""
    if chunk.get("choices"):
        return False
    told = chunk.get("base_resp")
    is_refused = chunk.get("success") is False or (isinstance(told, dict) and bool(told.get("status_code")))
    messages = (str(chunk.get(name) or "").strip(" .!").lower() for name in _MESSAGES)
    is_named = any(said not in _NO_FAULT for said in messages) or "error" in (chunk.get("object"), chunk.get("type"))
    return has_error(chunk) or is_refused or is_named


def has_error(holder: dict[str, Any]) -> bool:
    """Return whether an answer, a chunk or a choice has an error under its name, which says something beside words."""
    error = holder.get("error")
    if _holds_words(holder):
        return any(error.values()) if isinstance(error, dict) else bool(error)
    return error not in _NO_ERROR


def _holds_words(holder: dict[str, Any]) -> bool:
    return bool(holder.get("choices")) or any(isinstance(holder.get(name), dict) for name in ("delta", "message"))


def status_in(data: dict[str, Any]) -> int:
    """Return the status that an error names itself; a gateway passes on what it was told."""
    error = data.get("error")
    for holder in (error if isinstance(error, dict) else {}, data):
        for name in ("code", "status", "status_code"):
            value = holder.get(name)
            number = int(value) if isinstance(value, int | str) and str(value).isdigit() else 0
            if 400 <= number < 600:
                return number
    return 200
