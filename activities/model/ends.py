"""The reason that ends an answer, in the words of each vendor; a model is told why it is asked again."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from backstay.data_files import data_beside

End = Literal["done", "unsaid", "cut", "filtered", "refused", "broken", "malformed", "unknown", "disguised"]
"""done: the answer is whole; unsaid: the endpoint says nothing of it; disguised: a call is in it as text."""
MOST_AGAIN = 3
"""How many times in a row a model is asked again because of how its answers end; each is a step."""


@cache
def _words() -> dict[str, End]:
    return {_letters(word): end for end, words in data_beside(__file__)["words"].items() for word in words}


def _letters(word: str) -> str:
    """Return the letters of a word: `tool-calls`, `toolCalls` and `TOOL_CALLS` say the same."""
    plain = word.strip().lower()
    return "".join(sign for sign in plain if sign.isalpha()) or plain


@cache
def _notes() -> Mapping[str, Mapping[str, str]]:
    return data_beside(__file__)["told"]


_WHOLE = frozenset[End]({"done", "unsaid"})


def _said(word: str) -> End:
    return _words().get(_letters(word).removeprefix("finishreason"), "unknown")


def end_of(finish_reason: str, message: Mapping[str, Any]) -> End:
    """Return how an answer ended."""
    end = _said(finish_reason)
    if end == "unknown" and (kind := _said(finish_reason.partition(":")[0])) not in _WHOLE:
        # Gemini names the cause behind the kind of the end.
        end = kind
    refused = isinstance(message.get("refusal"), str) and message["refusal"].strip()
    return "refused" if refused and not message.get("content") and not message.get("tool_calls") else end


def ends_with_calls(finish_reason: str) -> bool:
    """Return whether an answer says that it ends with calls."""
    return _letters(finish_reason).removeprefix("finishreason") in {
        _letters(word) for word in data_beside(__file__)["calls"]
    }


def why_again(end: End, finish_reason: str = "") -> str:
    """Return what a model is told of an answer that cannot be taken as it ended."""
    return _notes()[end]["again"].format(said=finish_reason[:60])


def why_failed(end: End, finish_reason: str, text: str) -> str:
    """Return what people are told when it went on so, with the last words of the model."""
    said = _notes()[end]["failed"].format(said=finish_reason[:60])
    return f"{said} Its last words: {text}" if text.strip() else said


def noted(text: str, finish_reason: str, message: Mapping[str, Any]) -> str:
    """Return words that end a run whatever they say, with what people must know of how they ended."""
    note = _notes().get(end_of(finish_reason, message), {}).get("noted")
    return f"{text} ({note})" if text and note else text
