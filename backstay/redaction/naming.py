"""Take known secrets out of descriptions of tools, and leave the names of tools and of fields as they are.

A secret may be a word such as `customer`, which is also the name of a field, a tool or a role.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from backstay.redaction.entropy import is_worded
from backstay.redaction.known_secrets import KnownSecrets
from backstay.redaction.redactor import Redactor

_PROSE = frozenset({"description", "title", "$comment", "default", "example", "examples"})
"""Fields of a schema that are there to be read."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Fields that hold a schema for each name."""
_NAME = "REDACTED"
"""Stands for a name; endpoints take no brackets there."""
_Given = TypeVar("_Given")


class PartChanges(NamedTuple):
    """Hold the changes to the parts of what is given, which are always asked for in the same order."""

    prose: Callable[[Any], Any]
    """Takes what may say anything: a string, or an example in JSON."""
    choice: Callable[[str], str]
    """Takes a value that a model may choose."""
    name: Callable[[str], str]


def masked_parts(given: _Given, redactor: Redactor | None, changed: Callable[[_Given, PartChanges], _Given]) -> _Given:
    """Return what `changed` makes of the parts that hold a known secret; where none does, what is given.

    A name stays where the secret in it is an ordinary word.
    """
    if redactor is None or not redactor.known:
        return given
    known = redactor.known
    prose: list[Any] = []
    names: list[str] = []
    changed(given, PartChanges(partial(_noted, prose), partial(_noted, prose), partial(_noted, names)))
    clean, clean_names = redactor.without_known(prose), redactor.without_known(names)
    if clean is prose and clean_names is names:
        return given
    parts, named = iter(clean), iter(clean_names)

    def choice(text: str) -> str:
        shown = next(parts)
        return text if shown != text and _in_words(text, known) else shown

    def name(text: str) -> str:
        return text if next(named) == text or _in_words(text, known) else _NAME

    return changed(given, PartChanges(lambda _: next(parts), choice, name))


def _noted(noted: list[Any], part: Any) -> Any:
    noted.append(part)
    return part


def _in_words(text: str, known: KnownSecrets) -> bool:
    """Return whether all secrets in a name are ordinary words, which tell nobody that they are secrets."""
    found = [text[start:end] for start, end in known.places_in(text)]
    return bool(found) and all(part.replace("_", "").isalpha() and is_worded(part) for part in found)


def masked_schema(schema: Any, change: PartChanges, *, is_named: bool = False) -> Any:
    """Return a schema in which the texts and the names are changed."""
    match schema:
        case str():
            return change.name(schema)
        case dict():
            return {change.name(key): _below(key, item, change, is_named=is_named) for key, item in schema.items()}
        case list():
            return [masked_schema(item, change) for item in schema]
        case _:
            return schema


def _below(key: str, item: Any, change: PartChanges, *, is_named: bool) -> Any:
    if is_named:
        return masked_schema(item, change)
    if key in _PROSE:
        return change.prose(item)
    if key == "enum" and isinstance(item, list):
        return [change.choice(choice) if isinstance(choice, str) else choice for choice in item]
    if key == "const" and isinstance(item, str):
        return change.choice(item)
    return masked_schema(item, change, is_named=key in _NAMED)
