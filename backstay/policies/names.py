"""Compare what a policy names with what there is: tools and providers, people, and conditions that hold for less."""

import difflib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from backstay.frozen import Frozen
from backstay.policies.engine_tools import ENGINE_TOOLS
from backstay.policies.glob import matches
from backstay.policies.places import how_to_write
from backstay.policies.policy import Policy
from backstay.policies.rule import Rule, clip_line
from backstay.shown import one_line
from backstay.tools.own_server import OWN

_GLOB = frozenset("*?")
_LATER = "it is to come later"
_ENGINE = frozenset(name.partition(".")[2] for name in ENGINE_TOOLS)


class ProviderTools(Frozen):
    """Hold the tools of one provider of the toolbox."""

    tools: frozenset[str] = frozenset()
    unread: str = ""
    """Why its tools are not known; empty when its list was read."""


class Finding(NamedTuple):
    """Say what is wrong with a policy (an error: a line says what nobody meant), or what to know of it."""

    state: Literal["error", "warning"]
    where: str
    said: str


def findings(policy: Policy, offered: Mapping[str, ProviderTools]) -> list[Finding]:
    """Return what is to be said of a policy's names and conditions; every line stays in force whatever is found."""
    known = _with_engine(offered)
    found: list[Finding] = []
    for section, rules in policy.sections():
        for index, rule in enumerate(rules):
            where = f"{section}[{index}]"
            if not rule.optional:
                found += _named(where, rule.tool, known, is_tool=not section.startswith("reveal."))
            found += _held(section, where, rule)
    return [*found, *_covered(policy)]


def quota_findings(where: str, quotas: Iterable[str], offered: Mapping[str, ProviderTools]) -> list[Finding]:
    """Return what is to be said of the tools that quotas name; one that names no tool limits nothing."""
    known = _with_engine(offered)
    return [found for tool in quotas for found in _counted(where, tool, known)]


def _counted(where: str, tool: str, known: Mapping[str, ProviderTools]) -> Iterator[Finding]:
    if said := several_tools(tool):
        yield Finding("error", where, said)
    else:
        yield from _named(where, tool, known, is_tool=True, later="")


def several_tools(tool: str) -> str:
    """Return what is wrong with the name in a quota that is a pattern; empty for other names."""
    said = f"{one_line(tool, 200)}: a quota counts the calls of one tool; name each tool by itself"
    return "" if _GLOB.isdisjoint(tool) else said


def _with_engine(offered: Mapping[str, ProviderTools]) -> dict[str, ProviderTools]:
    return {**offered, "engine": ProviderTools(tools=_ENGINE)}


def _covered(policy: Policy) -> Iterator[Finding]:
    """Say which rules never decide: one without conditions comes before them, and applies to the same tools."""
    before: list[tuple[str, Rule]] = []
    for section in ("deny", "ask", "allow"):
        rules: tuple[Rule, ...] = getattr(policy, section)
        for index, rule in enumerate(rules):
            where = f"{section}[{index}]"
            first = next((found for found, earlier in before if matches(earlier.tool, rule.tool)), None)
            if first is not None:
                said = f"{rule.tool}: never decides, because {first} comes first and has no conditions"
                yield Finding("warning", where, f"{said}; give that one `when` or `unless`, or remove this line")
            if not (rule.when or rule.unless or rule.only or rule.until):
                before.append((where, rule))


def _named(
    where: str, pattern: str, known: Mapping[str, ProviderTools], *, is_tool: bool, later: str = _LATER
) -> Iterator[Finding]:
    provider, _, tool = pattern.partition(".")
    if "*" in pattern or "?" in pattern:
        yield from _matched(where, pattern, known, is_tool=is_tool)
    elif provider not in known and provider.startswith(OWN):
        said = f"{pattern}: servers that users add are not compared; the line is in force"
        yield Finding("warning", where, said)
    elif provider not in known:
        near = _nearest(pattern, provider, known, later)
        yield Finding("error", where, f"{pattern}: no provider of the toolbox is named {provider!r}{near}")
    elif is_tool and tool in known[provider].tools:
        return
    elif known[provider].unread:
        said = f"{pattern}: cannot be compared, {one_line(known[provider].unread, 200)}; the line is in force"
        yield Finding("warning", where, said)
    elif is_tool:
        near = _nearest(pattern, provider, known, later)
        yield Finding("error", where, f"{pattern}: {provider} has no such tool{near}")


def _matched(where: str, pattern: str, known: Mapping[str, ProviderTools], *, is_tool: bool) -> Iterator[Finding]:
    """Say so when a pattern fits nothing that is known now."""
    if is_tool:
        found = any(matches(pattern, f"{name}.{tool}") for name, there in known.items() for tool in there.tools)
    else:
        found = any(matches(pattern.partition(".")[0], name) for name in known)
    if found or pattern.startswith(OWN):
        # Servers of users come and go, and only their runs know the tools.
        return
    unread = sorted(name for name, there in known.items() if there.unread)
    more = f"; the tools of {one_line(', '.join(unread), 200)} are not known now" if unread else ""
    yield Finding("warning", where, f"{pattern}: fits no tool that is known{more}; the line is in force")


def _nearest(pattern: str, provider: str, known: Mapping[str, ProviderTools], later: str) -> str:
    """Return the nearest name in words, first among the tools of the same provider."""
    beside = [f"{provider}.{tool}" for tool in known[provider].tools] if provider in known else []
    every = [f"{name}.{tool}" for name, there in known.items() for tool in there.tools]
    for names in (beside, every, [f"{name}.{pattern.partition('.')[2]}" for name in known]):
        if near := difflib.get_close_matches(pattern, sorted(names), 1):
            return f"; did you mean {one_line(near[0], 200)!r}?{later and f' If {later}, add optional: true'}"
    return f"; correct the name{later and f', or add optional: true if {later}'}"


def _held(section: str, where: str, rule: Rule) -> Iterator[Finding]:
    """Say which conditions that permit something hold for less than they seem to, and how to write them."""
    widening = rule.when if section.endswith("allow") else rule.unless
    for path, operators in (widening or {}).items():
        for operator, operand in operators.items():
            if how := how_to_write(operator, operand):
                shown = clip_line(f"{path} {operator} {one_line(str(operand), 80)!r}", 200)
                yield Finding("warning", where, f"{rule.tool}: {shown}: {how}")
    if section.startswith("undo.") and (rule.when or rule.unless):
        said = "the arguments of an undo are not known when it is ruled on, so its conditions count against it"
        yield Finding("warning", where, f"{rule.tool}: {said}; write the line without them")


def twins(data: Any) -> list[Finding]:
    """Return people whom a policy, as it was written, names in two spellings; they would be one person."""
    spellings: dict[str, dict[str, None]] = {}
    for name in _people_in(data):
        spellings.setdefault(_person(name), {})[name] = None
    return [
        Finding("error", "people", f"{' and '.join(map(ascii, names))} are one person; write one of them everywhere")
        for names in spellings.values()
        if len(names) > 1
    ]


def _person(name: str) -> str:
    plain = unicodedata.normalize("NFC", name.strip())
    return unicodedata.normalize("NFC", plain.casefold()) if "@" in plain else plain


def _people_in(data: Any, *, named: bool = False) -> Iterator[str]:
    match data:
        case str() if named:
            yield data
        case dict():
            for key, item in data.items():
                within = key in ("approvers", "escalate_to", "groups")
                yield from _people_in(item, named=named or within)
        case list():
            for item in data:
                yield from _people_in(item, named=named)
        case _:
            return
