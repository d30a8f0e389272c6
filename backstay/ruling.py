"""Rule on one call: deny, ask or allow, and say which rule decided."""

import json
from functools import reduce
from typing import Any, Literal

from backstay.condition import Conditions, Outcome, judge
from backstay.glob import matches
from backstay.noun import Noun
from backstay.policy import Permission, Policy
from backstay.rule import OnExpiry, Rule
from backstay.secret import belongs_to, handles_in, provider_of
from backstay.tool import Tool

_STRICTNESS: dict[Permission, int] = {"allow": 0, "ask": 1, "deny": 2}
_AT_EXPIRY: dict[OnExpiry, int] = {"escalate": 0, "reject": 1, "fail": 2}
_LONGEST_LINE = 500


class Ruling(Noun):
    """Say what may be done with one call, and by whose leave."""

    verdict: Permission
    rule: str
    """Which rule decided, in one line."""
    approvers: tuple[str, ...] = ()
    """Persons who may decide; empty means anyone."""
    quorum: int = 1
    timeout_s: float | None = None
    on_expiry: OnExpiry = "reject"
    no_self_approval: bool = False


def rule(policy: Policy, tool: Tool, arguments: dict[str, Any], *, purpose: Literal["call", "undo"] = "call") -> Ruling:
    """Rule on a call under a policy and the policy below it; the stricter wins."""
    found = _ruled(policy, tool, arguments, purpose=purpose)
    foreign = sorted({provider_of(h) for h in handles_in(arguments) if not belongs_to(h, tool.provider)})
    if foreign:
        line = f"secret: a secret of {', '.join(foreign)} would be sent to {tool.provider}"
        found = stricter(Ruling(verdict="ask", rule=_clip(line)), found)
    return found


def stricter(one: Ruling, other: Ruling) -> Ruling:
    """Return the stricter of two rulings; of two that ask, one that satisfies both."""
    if one.verdict != other.verdict:
        return max(one, other, key=lambda ruling: _STRICTNESS[ruling.verdict])
    if one.verdict != "ask":
        return one
    line = one.rule if one.rule == other.rule else _clip(f"{one.rule}; {other.rule}")
    named = [set(ruling.approvers) for ruling in (one, other) if ruling.approvers]
    approvers = tuple(sorted(reduce(set.intersection, named))) if named else ()
    quorum = max(one.quorum, other.quorum)
    if named and quorum > len(approvers):
        return Ruling(verdict="deny", rule=_clip(f"nobody may approve this under both rules: {line}"))
    timeouts = [ruling.timeout_s for ruling in (one, other) if ruling.timeout_s is not None]
    return Ruling(
        verdict="ask",
        rule=line,
        approvers=approvers,
        quorum=quorum,
        timeout_s=min(timeouts, default=None),
        on_expiry=max(one.on_expiry, other.on_expiry, key=lambda at_expiry: _AT_EXPIRY[at_expiry]),
        no_self_approval=one.no_self_approval or other.no_self_approval,
    )


def _ruled(policy: Policy, tool: Tool, arguments: dict[str, Any], *, purpose: Literal["call", "undo"]) -> Ruling:
    found = _own(policy, tool, arguments, purpose=purpose)
    if policy.floor is None:
        return found
    found = found.model_copy(update={"rule": f"task's own {found.rule}"})
    return stricter(_ruled(policy.floor, tool, arguments, purpose=purpose), found)


def _own(policy: Policy, tool: Tool, arguments: dict[str, Any], *, purpose: Literal["call", "undo"]) -> Ruling:
    """Rule by one policy alone."""
    section = policy.undo if purpose == "undo" else policy
    prefix = "undo." if purpose == "undo" else ""
    asking: list[Ruling] = []
    for index, candidate in enumerate(section.deny):
        outcome, path = _applies(candidate, tool, arguments, allows=False)
        line = f"{prefix}deny[{index}]: {_describe(candidate)}"
        if outcome is Outcome.OPAQUE:
            asking.append(Ruling(verdict="ask", rule=_cannot_see(line, path)))
        elif outcome is not Outcome.FAILS:
            return Ruling(verdict="deny", rule=line)
    for index, candidate in enumerate(section.ask):
        outcome, path = _applies(candidate, tool, arguments, allows=False)
        if outcome is Outcome.FAILS:
            continue
        line = f"{prefix}ask[{index}]: {_describe(candidate)}"
        asking.append(_asks(policy, candidate, _cannot_see(line, path) if path else line))
        # A rule that applies only for caution's sake must not stand before a stricter one that truly applies.
        if outcome is Outcome.HOLDS:
            break
    if asking:
        return reduce(stricter, asking)
    return _allowed(section.allow, tool, arguments, prefix) or _by_default(policy, tool, purpose)


def _allowed(rules: tuple[Rule, ...], tool: Tool, arguments: dict[str, Any], prefix: str) -> Ruling | None:
    for index, candidate in enumerate(rules):
        outcome, path = _applies(candidate, tool, arguments, allows=True)
        line = f"{prefix}allow[{index}]: {_describe(candidate)}"
        if outcome is Outcome.OPAQUE:
            return Ruling(verdict="ask", rule=_cannot_see(line, path))
        if outcome is Outcome.HOLDS:
            return Ruling(verdict="allow", rule=line)
    return None


def _by_default(policy: Policy, tool: Tool, purpose: Literal["call", "undo"]) -> Ruling:
    if purpose == "undo":
        return Ruling(verdict=policy.undo.default, rule=f"undo.default: {policy.undo.default}")
    permission = policy.default.of(tool.safety)
    said = {"allow": "is allowed", "ask": "asks", "deny": "is denied"}[permission]
    return Ruling(verdict=permission, rule=f"default: {tool.safety.value} {said}")


def _applies(candidate: Rule, tool: Tool, arguments: dict[str, Any], *, allows: bool) -> tuple[Outcome, str]:
    """Say whether a rule applies, and name the path of an argument that leaves it open."""
    if not matches(candidate.tool, tool.name):
        return Outcome.FAILS, ""
    when, path = Outcome.HOLDS, ""
    if candidate.when is not None:
        when, path = judge(candidate.when, arguments, widens=allows)
    if when is Outcome.FAILS or candidate.unless is None:
        return when, path
    exempt, exempt_path = judge(candidate.unless, arguments, widens=not allows)
    if exempt in (Outcome.HOLDS, Outcome.DOUBTFUL):
        return Outcome.FAILS, ""
    return (Outcome.OPAQUE, exempt_path) if exempt is Outcome.OPAQUE else (when, path)


def _asks(policy: Policy, candidate: Rule, line: str) -> Ruling:
    return Ruling(
        verdict="ask",
        rule=line,
        approvers=policy.persons(candidate),
        quorum=candidate.quorum,
        timeout_s=candidate.timeout,
        on_expiry=candidate.on_expiry,
        no_self_approval=candidate.no_self_approval,
    )


def _describe(candidate: Rule) -> str:
    parts = [candidate.tool]
    if candidate.when is not None:
        parts.append(f"when {_spell(candidate.when)}")
    if candidate.unless is not None:
        parts.append(f"unless {_spell(candidate.unless)}")
    return _clip(" ".join(parts))


def _spell(conditions: Conditions) -> str:
    # ASCII JSON: a task's own policy is hostile text too, and this line is shown to people.
    return " and ".join(
        f"{path} {operator} {_clip(json.dumps(operand, sort_keys=True), 80)}"
        for path, operators in conditions.items()
        for operator, operand in operators.items()
    )


def _cannot_see(line: str, path: str) -> str:
    return _clip(f"{line} (asks: {path} is a secret, a stored value or a reference, which the rule cannot look into)")


def _clip(line: str, longest: int = _LONGEST_LINE) -> str:
    return line if len(line) <= longest else line[: longest - 1] + "…"
