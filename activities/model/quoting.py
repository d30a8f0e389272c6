"""Tell whether a call may be a quote: whether what makes it up is in what a model was shown, however it is spelled.

In doubt it is a quote; the model is asked again then, and nothing is done on the word of a page.
"""

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from backstay.canonical import texts_of

LEAST_TELLING = 6
"""A string of fewer characters is in many texts by chance."""
_ROUNDS = 3
"""This many layers of escapes are taken off a string."""
_OF_THE_MODEL = frozenset({"system", "said"})
_OF_PEOPLE = frozenset({"task", "message"})
_ESCAPES = re.compile(r"(?<!\\)\\++(?:u([0-9a-f]{4})|u\{([0-9a-f]{1,6})\}|x([0-9a-f]{2}))", re.IGNORECASE)
_BREAKS = re.compile(r"(?<!\\)\\++[nrtbf]")
_COLOURS = re.compile(r"\x1b?\[[0-9;]{0,20}m")


def spelled_plainly(text: str) -> str:
    """Return the letters and digits of a string without escapes, accents, colours and control characters."""
    for _ in range(_ROUNDS):
        before = text
        text = unquote(html.unescape(_ESCAPES.sub(_unescaped, text)))
        if text == before:
            break
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = _COLOURS.sub("", _BREAKS.sub("", text))
    return "".join(sign for sign in unicodedata.normalize("NFKD", text).casefold() if sign.isalnum())


def _unescaped(found: re.Match[str]) -> str:
    number = int(found[1] or found[2] or found[3], 16)
    return chr(number) if number <= 0x10FFFF else ""


def may_be_quoted(calls: Iterable[Mapping[str, Any]], items: Iterable[Mapping[str, Any]], *, forgotten: int) -> bool:
    """Return whether calls may come from what a model was shown: the name of a function, or a value, is in it.

    Of what was cut or forgotten nobody knows. The words of the person hold the values of every honest call, so that
    only a name makes a quote of them.
    """
    items = [item for item in items if item["kind"] not in _OF_THE_MODEL]
    if forgotten or any("cut" in item for item in items):
        return True
    others = [_text_of(item) for item in items if item["kind"] not in _OF_PEOPLE]
    people = [_text_of(item) for item in items if item["kind"] in _OF_PEOPLE]
    # Two pieces that were read one after the other are one text as well.
    read = [spelled_plainly("\n".join(others)), "".join(map(spelled_plainly, _values(others)))]
    named = [*read, spelled_plainly("\n".join(people))]
    for call in calls:
        function = call["function"]
        name = spelled_plainly(str(function["name"]))
        values = (spelled_plainly(value) for value in texts_of(_read(function["arguments"])))
        if any(name in text for text in named if name):
            return True
        if any(value in text for value in values if len(value) >= LEAST_TELLING for text in read):
            return True
    return False


def _text_of(item: Mapping[str, Any]) -> str:
    text = str(item.get("text") or "")
    if item["kind"] != "tools":
        return text
    # A search always names what it has found; servers' words about their tools are theirs.
    found = _read(text)
    hits = found.get("tools") if isinstance(found, dict) else None
    if not isinstance(hits, list):
        return text
    return json.dumps(
        [{name: said for name, said in hit.items() if name != "tool"} for hit in hits if isinstance(hit, dict)]
    )


def _values(texts: Iterable[str]) -> Iterator[str]:
    """Yield the strings in answers, without the refs beside them."""
    for text in texts:
        found = _read(text)
        if isinstance(found, dict):
            found = {name: value for name, value in found.items() if name != "ref"}
        yield from texts_of(found)


def _read(text: Any) -> Any:
    """Return what a string holds as JSON, else the text."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text
