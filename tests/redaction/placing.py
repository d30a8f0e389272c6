"""Kinds of secrets, the contexts they stand in, and one placed in the other."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from tests.redaction.grammar import Filler, read

SPELLINGS = ("snake", "env", "camel", "kebab", "header", "spoken")


@dataclass(frozen=True)
class Kind:
    """One documented form of a secret, as formats.yaml describes it."""

    kind: str
    issuer: str
    documented: str
    form: str
    names: list[str]
    shape: str = "token"
    needs_name: bool = False

    def value(self, generator: Random) -> tuple[str, str]:
        """Draw a value and the part of it that is the secret."""
        marked = Filler(generator).text(self.form)
        before, opened, rest = marked.partition("<")
        secret, closed, after = rest.partition(">")
        return (before + secret + after, secret) if opened and closed else (marked, marked)


@dataclass(frozen=True)
class Context:
    """One template that a value is put into, as contexts.yaml describes it."""

    context: str
    placement: str
    payload: Any
    takes: Collection[str] = ("token", "blob")

    @cached_property
    def telling(self) -> bool:
        """Say whether the value stands beside a name that tells what it is."""
        return any(f"{{put:{spelling}}}" in str(self.payload) for spelling in SPELLINGS)

    def holds(self, kind: Kind) -> bool:
        """Say whether a value of this kind can stand here and still be known for a secret."""
        return kind.shape in self.takes and (self.telling or not kind.needs_name)

    def filled(self, kind: Kind, generator: Random) -> tuple[Any, str]:
        """Draw a value of the kind, put it in place, and return the payload and the secret in it."""
        value, secret = kind.value(generator)
        slots = spellings(generator.choice(kind.names)) | {
            "value": value,
            "indented": value.replace("\n", "\n    "),
            "escaped": value.replace("\n", "\\n"),
        }
        return Filler(generator, slots).payload(self.payload), secret


def spellings(name: str) -> dict[str, str]:
    """Spell a telling name as settings, programs, headers and people do."""
    first, *others = words = name.split("_")
    titled = "-".join(word.capitalize() for word in words)
    return {
        "snake": name,
        "env": name.upper(),
        "camel": first + "".join(word.capitalize() for word in others),
        "kebab": "-".join(words),
        "header": titled if first == "x" else f"X-{titled}",
        "spoken": " ".join(words),
    }


def kinds(*, held_out: bool) -> list[Kind]:
    """Read one half of the kinds."""
    return [Kind(**entry) for entry in read("held_out.yaml" if held_out else "formats.yaml")]


def contexts(*, held_out: bool) -> list[Context]:
    """Read one half of the contexts."""
    return [Context(**entry) for entry in read("held_out_contexts.yaml" if held_out else "contexts.yaml")]
