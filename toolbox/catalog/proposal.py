"""Propose a safety class for each tool that has none: by what its server says of it, then by its name.

A proposal is no more than that. A person accepts each group, and a name that sounds dangerous outweighs a server that
says the contrary.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal

from backstay.tools.tool import Safety
from toolbox.catalog.definition import Definition
from toolbox.catalog.naming import words_of

_WORDS: Mapping[str, list[str]] = json.loads(Path(__file__).with_name("verbs.json").read_text(encoding="utf-8"))
_READS, _REACHES_OUT, _ADDS, _ENDANGERS = (
    frozenset(_WORDS[kind]) for kind in ("reads", "reaches_out", "adds", "endangers")
)


@dataclass(frozen=True, slots=True)
class ProposalGroup:
    """Hold tools of one provider for which the same is proposed, on the same grounds."""

    safety: Safety
    egress: bool
    """Whether what they are called with leaves, although they only read."""
    grounds: Literal["server", "name"]
    tools: tuple[str, ...]

    def declaration(self) -> dict[str, str | bool]:
        """Return what toolbox.json would say of each tool."""
        return {"safety": self.safety.value} | ({"egress": True} if self.egress else {})


def propose(definitions: Iterable[Definition]) -> tuple[list[ProposalGroup], list[str]]:
    """Return the groups for tools without a class, and the tools that stay `restricted_write`."""
    groups: dict[tuple[Safety, bool, Literal["server", "name"]], list[str]] = {}
    restricted: list[str] = []
    for definition in definitions:
        if definition.declaration.safety is not None or definition.trusted or definition.hidden:
            continue
        found = _proposed(definition)
        if found is None:
            restricted.append(definition.mcp_name)
        else:
            groups.setdefault(found, []).append(definition.mcp_name)
    return [ProposalGroup(*found, tuple(tools)) for found, tools in sorted(groups.items())], restricted


def _proposed(definition: Definition) -> tuple[Safety, bool, Literal["server", "name"]] | None:
    words = words_of(definition.mcp_name)
    said = definition.said["annotations"]
    if said["destructive"] and not said["read_only"]:
        return None
    egress = bool(said["open_world"]) or not _REACHES_OUT.isdisjoint(words)
    if said["read_only"]:
        # A tool that only reads may well be called `get_post`, but hardly `delete_post`.
        doubtful = not _ENDANGERS.isdisjoint(_before_reading(words))
        return None if doubtful else (Safety.READ_ONLY, egress, "server")
    if not _ENDANGERS.isdisjoint(words):
        return None
    if said["destructive"] is False:
        return Safety.WRITE_SAFE, False, "server"
    adds = not _ADDS.isdisjoint(words)
    if said["read_only"] is None and not adds and not _READS.isdisjoint(words):
        return Safety.READ_ONLY, egress, "name"
    return (Safety.WRITE_SAFE, False, "name") if adds and _READS.isdisjoint(words) else None


def _before_reading(words: list[str]) -> Iterator[str]:
    """Return the words that come before the first one that says that something is read."""
    return takewhile(lambda word: word not in _READS, words)
