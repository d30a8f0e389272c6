"""What the answer to a write means: it took effect, it failed, or nobody can tell."""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from backstay.data_files import data_beside
from backstay.errors import ArgumentsInvalid
from toolbox.configuration.template import holds
from toolbox.providers.answer import BESIDE, Answer
from toolbox.providers.declaration import Declaration

LOOKED_AT = 2000
"""How many characters of a string are looked at."""
MAY_HAVE_ACTED = "the error may have come after it took effect"
_DEPTH = 3
_LISTS = data_beside(__file__)
_SUCCESS = frozenset[str](_LISTS["success"].split())
_FAILURE = frozenset[str](_LISTS["failure"].split())
_ERRORS = frozenset[str](_LISTS["errors"].split())
_STATES = frozenset[str](_LISTS["states"].split())
_ERROR_STATES = frozenset[str](_LISTS["error_states"].split())
_STATUS_CODES = frozenset[str](_LISTS["status_codes"].split())
_DESCRIPTIVE = frozenset[str](_LISTS["descriptive"].split())
_WORDS = tuple[str, ...](_LISTS["words"].split())
_WRAPPERS = frozenset[str](_LISTS["wrappers"].split())
_NO_ERROR = frozenset({"none", "null", "no", "no error", "ok", "success", "false", "0"})

_BEGINNING = re.compile(_LISTS["patterns"]["beginning"])
_STATUS_LINE = re.compile(_LISTS["patterns"]["status_line"])
_END = re.compile(_LISTS["patterns"]["end"])
_PHRASE = re.compile(_LISTS["patterns"]["phrase"])
_PAGE = re.compile(_LISTS["patterns"]["page"])


class Meaning(StrEnum):
    """Name what an answer says of the call."""

    APPLIED = "applied"
    FAILED = "failed"
    DOUBTFUL = "doubtful"


class AnswerMeaning(NamedTuple):
    """Hold what an answer means, and why."""

    meaning: Meaning
    why: str = ""


def judge(answer: Answer, declared: Declaration, variables: Mapping[str, Any]) -> AnswerMeaning:
    """Say what the answer to a write means: by the tool's declaration, or else by what it looks like.

    `variables` are `arguments` and `effect`; the declared expressions see `result` and `error`, too.
    """
    seen = {**variables, "result": answer.meant, "error": answer.error}
    if declared.failed_if is not None and _holds(declared.failed_if, seen):
        return AnswerMeaning(Meaning.FAILED, "failed_if says that it failed")
    if not answer.success:
        may_have_acted = answer.may_have_acted or (declared.verify is not None and not answer.left_nothing)
        return AnswerMeaning(Meaning.DOUBTFUL, MAY_HAVE_ACTED) if may_have_acted else AnswerMeaning(Meaning.FAILED)
    if declared.succeeded_if is not None:
        succeeded = _holds(declared.succeeded_if, seen)
        if succeeded:
            return AnswerMeaning(Meaning.APPLIED)
        certain = succeeded is False and declared.failed_if is None
        return AnswerMeaning(
            Meaning.FAILED if certain else Meaning.DOUBTFUL, "succeeded_if does not say that it succeeded"
        )
    if declared.failed_if is not None:
        failed = _holds(declared.failed_if, seen)
        return (
            AnswerMeaning(Meaning.APPLIED)
            if failed is False
            else AnswerMeaning(Meaning.DOUBTFUL, "failed_if cannot tell")
        )
    if reports_error(answer.data) and not answer.stated:
        return AnswerMeaning(Meaning.DOUBTFUL, "the answer reports an error")
    return AnswerMeaning(Meaning.APPLIED)


def why_failed(answer: Answer, declared: Declaration, variables: Mapping[str, Any]) -> str | None:
    """Return why the answer to a read is none, though it came as a result; None when it is one.

    Without a declaration only a flag of its own counts, such as `"ok": false` beside an error: the text that a read
    finds may be the error of something else.
    """
    seen = {**variables, "result": answer.meant, "error": answer.error}
    if declared.failed_if is not None and _holds(declared.failed_if, seen):
        return f"failed_if says that it failed: {told(answer.data)}"
    if declared.succeeded_if is not None:
        failed = _holds(declared.succeeded_if, seen) is False
        return f"succeeded_if does not say that it succeeded: {told(answer.data)}" if failed else None
    if declared.failed_if is not None or answer.stated or not isinstance(answer.data, dict):
        return None
    found = {_plain(str(key)): value for key, value in answer.data.items()}
    errors = [found[key] for key in _ERRORS & found.keys() if _says_something(found[key])]
    refused = any(_is_false(found[key]) for key in _SUCCESS & found.keys())
    return told(errors[0]) if refused and errors else None


def reports_error(data: Any) -> bool:
    """Return whether an answer that came as a result does nothing but report an error."""
    return _is_only_false(data) or _reports(data, _DEPTH)


def told(data: Any) -> str:
    """Return an answer in one text for people."""
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def _holds(condition: str, variables: Mapping[str, Any]) -> bool | None:
    """Return whether a declared condition holds; None when it cannot be computed over this answer."""
    try:
        return holds(condition, variables)
    except ArgumentsInvalid:
        return None


def _reports(data: Any, depth: int) -> bool:
    match data:
        case str():
            return _text_reports(data)
        case list() if data and depth:
            texts = [item["text"] for item in data if isinstance(item, dict) and item.get("type") == "text"]
            if len(texts) == len(data):
                return _reports("\n".join(map(told, texts)) if len(texts) > 1 else texts[0], depth - 1)
            return all(isinstance(item, dict | str) and _reports(item, depth - 1) for item in data)
        case dict() if BESIDE in data:
            return _reports_beside({key: value for key, value in data.items() if key != BESIDE}, data[BESIDE], depth)
        case dict() if data:
            return _object_reports({_plain(str(key)): value for key, value in data.items()}, depth)
        case _:
            return False


def _reports_beside(data: dict[str, Any], beside: Any, depth: int) -> bool:
    """Return whether structured content or the words beside it report an error, unless it says that it is a success."""
    if any(value is True for key, value in data.items() if _plain(str(key)) in _SUCCESS):
        return False
    return _reports(data, depth) or _reports(beside, depth)


def _object_reports(found: dict[str, Any], depth: int) -> bool:
    if any(found.get(key) is True for key in _SUCCESS):
        return False
    if any(_is_false(found[key]) for key in _SUCCESS & found.keys()):
        return True
    if any(found.get(key) is True for key in _FAILURE) or any(_says_something(found.get(key)) for key in _ERRORS):
        return True
    if any(_is_error_state(found.get(key)) for key in _STATES):
        return True
    if any(_is_error_code(found.get(key)) for key in _STATUS_CODES):
        return True
    filled = {key: value for key, value in found.items() if value not in (None, "", [], {})}
    if len(filled) == 1 and filled.keys() <= _WRAPPERS and depth:
        return _reports(next(iter(filled.values())), depth - 1)
    return filled.keys() <= _DESCRIPTIVE and _words_report(filled)


def _words_report(found: dict[str, Any]) -> bool:
    """Return whether an object that holds nothing but words describes an error."""
    words = [found[key] for key in _WORDS if key in found]
    if any(isinstance(value, list) and _is_validation(value) for value in words):
        return True
    texts = [value for value in words if isinstance(value, str)]
    if texts and _is_error_code(found.get("code")):
        return True
    return any(_text_reports(text) or (len(text) < 300 and _PHRASE.search(text)) for text in texts)


def _is_validation(items: list[Any]) -> bool:
    return all(isinstance(item, dict) and ("msg" in item or "message" in item) for item in items)


def _is_false(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value.strip().lower() == "false")


def _is_only_false(data: Any) -> bool:
    """Return whether all that an answer says is `false`, as such or as the result that some SDKs wrap."""
    if not isinstance(data, dict):
        return _is_false(data)
    beside = data.get(BESIDE, [])
    if data.keys() not in ({"result"}, {"result", BESIDE}, {"value", BESIDE}) or not isinstance(beside, list):
        return False
    return all(_is_false(said) for key, said in data.items() if key != BESIDE) and all(map(_is_false, beside))


def _is_error_state(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    return value.strip().lower() in _ERROR_STATES or (value != "Error" and value.endswith(("Exception", "Error")))


def _is_error_code(value: Any) -> bool:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) == 3:
        value = int(value)
    return isinstance(value, int) and 400 <= value <= 599


def _says_something(value: Any) -> bool:
    match value:
        case str():
            return bool(value.strip()) and value.strip().lower() not in _NO_ERROR
        case dict():
            return any(_says_something(inner) for inner in value.values())
        case _:
            return bool(value)


def _text_reports(text: str) -> bool:
    text = text[:LOOKED_AT].strip()
    if text.startswith("<"):
        return _PAGE.search(text) is not None
    line, _, more = text.partition("\n")
    line = re.sub(r"^[\W_]+", "", line)
    if _BEGINNING.match(line) or _STATUS_LINE.match(line):
        return True
    return not more and len(line) < 300 and _END.search(line) is not None


def _plain(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")
