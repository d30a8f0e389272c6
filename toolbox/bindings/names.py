"""Turn a server's names into Python names that are safe, unique and easy to guess."""

import builtins
import json
import keyword
import re
import unicodedata
from collections.abc import Iterable

from toolbox.catalog.naming import hash_of

_LONGEST = 64
_GUESSED = re.compile(r"[^A-Za-z0-9_]+")
_TAKEN_EVERYWHERE = frozenset({"__debug__", *keyword.kwlist})
IN_BINDINGS = frozenset({"UNSET", "call", "Any", "Literal", "NotRequired", "TypedDict"})
"""Names that the source of a binding uses; no tool and no parameter may have them."""
IN_PROGRAMS = frozenset({"ToolError", "asyncio", "json", "main", "mcp", "re", "result", "solve", *dir(builtins)})
"""Names with another meaning in programs; no provider may have them."""


def unique(names: Iterable[str], *, reserved: frozenset[str], plain: bool) -> dict[str, str]:
    """Return a Python name for each name; valid Python names stay as they are.

    Plain names are for modules and functions: ASCII, without underscores around, which have a meaning there.
    """
    chosen: dict[str, str] = {}
    wanted = {name: _identifier(name, reserved, plain=plain) for name in names}
    for name in sorted(wanted, key=lambda name: (wanted[name] != name, name)):
        other = wanted[name]
        while other in chosen.values() or other in reserved:
            other = f"{wanted[name][: _LONGEST - 10].rstrip('_')}_{hash_of(other + name, 8)}"
        chosen[name] = other
    return {name: chosen[name] for name in wanted}


def literal(text: str) -> str:
    """Return the Python literal of a string: one line, in which nothing is hidden from a reader."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isascii() and quoted.isprintable():
        return quoted
    return "".join(sign if sign.isalnum() or " " <= sign <= "~" else _escaped(sign) for sign in quoted)


def camel(*words: str) -> str:
    """Return a class name made of these words."""
    parts = [part for word in words for part in re.findall(r"[A-Za-z0-9]+", word)]
    return "".join(part[:1].upper() + part[1:] for part in parts)[:_LONGEST]


def _identifier(name: str, reserved: frozenset[str], *, plain: bool) -> str:
    if plain or not _is_identifier(name):
        folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        name = _GUESSED.sub("_", folded if plain else name)
        name = name.strip("_") if plain else name
    if not name or name[0].isdigit():
        name = f"tool_{name}".rstrip("_") if plain else f"_{name}"
    if len(name) > _LONGEST:
        name = f"{name[: _LONGEST - 10].rstrip('_')}_{hash_of(name, 8)}"
    return f"{name}_" if name in reserved or name in _TAKEN_EVERYWHERE else name


def _is_identifier(name: str) -> bool:
    return name.isidentifier() and unicodedata.normalize("NFKC", name) == name


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
