"""What an argument is to a line that is learned: where a call goes, how much, or a string that may be anything."""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from backstay.canonical import canonical
from backstay.data_files import data_beside
from backstay.policies.condition import Conditions
from backstay.policies.operators import compare
from backstay.provenance.source import Source
from backstay.provenance.targets import is_moment, shape_of
from backstay.provenance.words import name_words

Role = Literal["target", "fixed", "number", "text"]
"""target: says where a call goes or what it acts on. fixed: stays as it is. number: has a bound. text: may be any."""
_LISTS = data_beside(__file__)
_SHARED = frozenset[str](_LISTS["shared"].split())
_AMOUNTS = frozenset[str](_LISTS["amounts"].split())
_ATTACHED, _WRITTEN, _SETTINGS = (frozenset[str](_LISTS[each].split()) for each in ("attached", "written", "settings"))
_NUMERAL = re.compile(r"[^\w\s]?\s?[-+]?\d[\d., ']*\s?(?:%|[A-Za-z]{1,4}|[^\w\s])?")
_MOST_TEXT = 2000
_ADDRESS, _URL, _PATH = (
    re.compile(r"[^@\s]+(@[^@\s]+)"),
    re.compile(r"(https?://([^/?#\s]+)/)(\S*)"),
    re.compile(r"[^\s\\]+"),
)
_LEAST_DEPTH = 2
"""A folder right below the root holds too much to stand for what is in it."""


class Generalization(NamedTuple):
    """Hold a condition that holds for a value and for others beside it, and what it is called."""

    operator: str
    operand: str
    called: str


def role_of(name: str, value: Any) -> Role:
    """Return what an argument is; anything else stays as it is."""
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        return "fixed"
    if isinstance(value, int | float):
        is_plain = math.isfinite(value) and shape_of(name, str(value)) not in ("atom", "place")
        return "number" if is_plain else "fixed"
    text = str(value)
    if not text or len(text) > _MOST_TEXT:
        return "text" if shape_of(name, "x") == "other" and _ATTACHED.isdisjoint(name_words(name)) else "fixed"
    if shape_of(name, text) != "other" or not _ATTACHED.isdisjoint(name_words(name)):
        return "target"
    if _is_setting(name, text):
        return "fixed"
    amount = not _AMOUNTS.isdisjoint(name_words(name)) or (_NUMERAL.fullmatch(text.strip()) and not is_moment(text))
    return "fixed" if amount else "text"


def _is_setting(name: str, text: str) -> bool:
    """Return whether a value says how a call is done, such as `private` or `yes`, and is not meant for people."""
    last = "".join(name_words(name)[-1:])
    return last in _SETTINGS or (last not in _WRITTEN and not is_moment(text) and len(text.split()) == 1)


def places_of(value: Any) -> Iterator[Generalization]:
    """Yield what a value has in common with those beside it, the narrowest first: its folder, its host or its domain.

    Only what the matchers of policy hold for without a doubt is yielded, and nothing of which many people have a part.
    """
    if not isinstance(value, str) or not value.isascii():
        return
    for place in _places(value):
        if compare(place.operator, value, place.operand, widens=True) is True:
            yield place


def _places(value: str) -> Iterator[Generalization]:
    if address := _ADDRESS.fullmatch(value):
        domain = address[1]
        if domain == domain.lower() and not _is_shared(domain[1:]):
            yield Generalization("ends_with", domain, f"addresses at {domain[1:]}")
    elif url := _URL.fullmatch(value):
        root, host, path = url[1], url[2], re.split(r"[?#]", url[3])[0]
        folder = path.rpartition("/")[0]
        if folder:
            yield Generalization("starts_with", f"{root}{folder}/", f"URLs below {root}{folder}/")
        if not _is_shared(host):
            yield Generalization("starts_with", root, f"URLs at {host}")
    elif "://" not in value and "/" in value and not value.startswith(("~", "-")) and _PATH.fullmatch(value):
        folder = value.rpartition("/")[0]
        if len([part for part in folder.split("/") if part]) >= (_LEAST_DEPTH if value.startswith("/") else 1):
            yield Generalization("starts_with", f"{folder}/", f"what is below {folder}/")


def _is_shared(host: str) -> bool:
    """Return whether many who have nothing to do with each other have an address or pages there."""
    name = host.partition(":")[0].lower()
    labels = name.split(".")
    return any(".".join(labels[start:]) in _SHARED for start in range(len(labels)))


def exactly(values: list[Any]) -> dict[str, Any]:
    """Return the operators that hold for these values alone."""
    if len(values) == 1:
        return {"equals": values[0]}
    return {"in": sorted(values, key=canonical)}


def without_sources(conditions: Conditions) -> Conditions:
    """Return conditions that hold wherever the values came from."""
    left = {path: {name: said for name, said in each.items() if name != "from"} for path, each in conditions.items()}
    return {path: each for path, each in left.items() if each}


def origins_of(value: Any, sources: Iterable[Source]) -> tuple[str, ...]:
    """Return where a value came from, in the words of the policy's `from`; nothing for what comes from nowhere."""
    if value is None or isinstance(value, bool):
        return ()
    return tuple(sorted({origin_of(source) for source in sources} or {"model"}))


def origin_of(source: Source) -> str:
    """Return one place in these words; empty where they would name more than that place."""
    # The value `program` would fit it, whatever a program had read.
    named = source.tool if source.kind in ("tool", "program") else source.kind
    return "" if named is None or set(named) & set("*?") else named


def is_of_others(source: Source) -> bool:
    """Return whether strangers may have written what was there, or nobody vouches for it."""
    return source.content == "others" or bool(source.why)


def is_path(name: str) -> bool:
    """Return whether a condition can name an argument; one that holds a dot would be read as a path."""
    return name.isascii() and name.isprintable() and bool(name) and "." not in name and len(name) <= 200
