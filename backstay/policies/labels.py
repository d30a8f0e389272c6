"""Ask before what a server has labelled private goes to where others may read it."""

from collections.abc import Collection
from typing import Any

from backstay.policies.ruling import Ruling, clip_line
from backstay.provenance.source import ArgumentSources
from backstay.tools.tool import Tool

MOST_NAMED = 20
_SENT = frozenset({"task", "person", "operator"})


def rule_on_labels(
    private: Collection[str], tool: Tool, arguments: dict[str, Any], sources: ArgumentSources | None
) -> Ruling | None:
    """Return the ruling on a call of a run to which these providers answered something private; None: it may pass.

    A model may tell it in other words in anything that it writes by itself, so only what the task, a person or the
    operator gave is known not to.
    """
    told = sorted(name for name in private if is_wider(tool, name))
    if not told or not _says_something(arguments) or _is_sent_by_people(sources):
        return None
    named = ", ".join(told[:3])
    line = f"label: {named} labelled private what it answered, and {tool.name} is not known to keep it so"
    return Ruling(verdict="ask", rule=clip_line(line))


def is_wider(tool: Tool, provider: str) -> bool:
    """Return whether others than the readers of what a provider answered may read what a tool is called with."""
    match tool.audience:
        case "own":
            return False
        case "public":
            return True
        case _:
            return tool.provider != provider and (tool.effectful or tool.egress)


def _says_something(value: Any) -> bool:
    match value:
        case None | bool():
            return False
        case dict():
            return any(map(_says_something, value.values()))
        case list():
            return any(map(_says_something, value))
        case _:
            return value != ""


def _is_sent_by_people(sources: ArgumentSources | None) -> bool:
    if sources is None or sources.more or not sources.by:
        return False
    return all(parts and all(_SENT.intersection(codes) for codes in parts) for parts in sources.by.values())
