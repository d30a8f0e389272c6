"""Turn the recorded weeks into cases, and count what lines that are learned from them decide."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from backstay.canonical import digest_of
from backstay.policies.learning.case import Case
from backstay.policies.policy import Policy, rule
from backstay.policies.rule import Rule
from backstay.provenance.source import ArgumentSources, source_of
from backstay.tools.tool import Safety, Tool
from tests.learning.office import Ask, Said

TODAY = "2026-01-01"


def cases(asks: Iterable[Ask]) -> list[Case]:
    """Return what the store would tell of asks."""
    return [case(ask, said) for ask in asks for said in ask.said]


def case(ask: Ask, said: Said, **more: Any) -> Case:
    told = {at: sources_of(parts) for at, parts in ask.sources.items() if at and parts != (("model",),)}
    edited = {name for name, value in (said.arguments or {}).items() if ask.arguments.get(name) != value}
    known: dict[str, Any] = {
        "run": ask.run,
        "request": "r1",
        "starters": frozenset({ask.starter}),
        "tool": ask.tool,
        "arguments": ask.arguments,
        "by": said.by,
        "said": said.verdict,
        "verified": said.verified,
        "asked_at": ask.at,
        "decided_at": said.at,
        "args_digest": digest_of(ask.arguments),
        "sources": {at.removeprefix("/"): sources for at, sources in told.items()},
        "edited": frozenset(edited),
    }
    return Case(**known | more)


def sources_of(parts: Iterable[Iterable[str]]) -> tuple[Any, ...]:
    return tuple(source_of(code) for part in parts for code in part)


def lets(rules: Sequence[Rule], ask: Ask, today: str = TODAY) -> bool:
    """Return whether a policy with these lines lets a call go unasked."""
    tool = Tool(name=ask.tool, definition="d1", safety=Safety.WRITE_SAFE)
    policy = Policy(allow=tuple(rules))
    return (
        rule(policy, tool, ask.arguments, sources=ArgumentSources(by=dict(ask.sources)), today=today).verdict == "allow"
    )


def figures(rules: Sequence[Rule], asks: Iterable[Ask]) -> dict[str, tuple[int, int]]:
    """Return by kind of ask how many of the last week go unasked, and of how many."""
    let, every = Counter[str](), Counter[str]()
    for ask in asks:
        (said,) = ask.said
        kinds = [ask.kind]
        if said.verdict == "reject":
            kinds += ["rejected", "rejected by a slip" if said.slip else "rejected and meant"]
        for kind in kinds:
            every[kind] += 1
            let[kind] += lets(rules, ask)
    return {kind: (let[kind], count) for kind, count in sorted(every.items())}
