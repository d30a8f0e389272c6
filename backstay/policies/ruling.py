"""The ruling of a policy on one call."""

from functools import reduce
from typing import Literal

from backstay.authority import Authority
from backstay.frozen import Frozen
from backstay.policies.rule import OnExpiry, clip_line
from backstay.shown import one_line, shell_words

Permission = Literal["allow", "ask", "deny"]
"""What a policy says of a call."""

_STRICTNESS: dict[Permission, int] = {"allow": 0, "ask": 1, "deny": 2}
_AT_EXPIRY: dict[OnExpiry, int] = {"escalate": 0, "reject": 1, "fail": 2}


class Ruling(Frozen):
    """State whether a call is allowed, and who may approve it."""

    verdict: Permission
    rule: str
    """Which rule decided, in one line."""
    approvers: tuple[str, ...] = ()
    """Persons who may decide; empty means anyone."""
    quorum: int = 1
    timeout_s: float | None = None
    on_expiry: OnExpiry = "reject"
    no_self_approval: bool = False
    verified: bool = False
    """Whether a verified person must decide even where none is named."""
    remind_after_s: float | None = None
    """How long nothing happens before people are reminded, and reminded again."""
    escalate_to: tuple[str, ...] = ()
    """Persons who may decide, too, when nobody did in time."""
    unseen: bool = False
    """Whether it asks because a rule could not look into an argument."""
    line: str = ""
    """The accepted line that decided in place of the default, by its id."""
    minds: tuple[str, ...] = ()
    """The arguments because of whose sources it asks, as JSON pointers."""

    @property
    def told(self) -> str:
        """Return what it says, and which rule does, in one line."""
        return f"{self.verdict}: {self.rule}"

    @property
    def authority(self) -> Authority:
        """Return who may decide."""
        return Authority(
            approvers=self.approvers,
            quorum=self.quorum,
            no_self_approval=self.no_self_approval,
            verified=self.verified,
        )

    def escalated_after(self, timeout_s: float | None) -> tuple[str, ...]:
        """Return who may decide, too, when nobody did for so long."""
        return self.escalate_to if self.timeout_s is not None and self.timeout_s == timeout_s else ()


def stricter(left: Ruling, right: Ruling) -> Ruling:
    """Return the stricter of two rulings; of two that ask, a ruling that satisfies both."""
    if left.verdict != right.verdict:
        return max(left, right, key=lambda ruling: _STRICTNESS[ruling.verdict])
    if left.verdict != "ask":
        return left
    line = left.rule if left.rule == right.rule else clip_line(f"{left.rule}; {right.rule}")
    named = [set(ruling.approvers) for ruling in (left, right) if ruling.approvers]
    approvers = tuple(sorted(reduce(set.intersection, named))) if named else ()
    quorum = max(left.quorum, right.quorum)
    if named and quorum > len(approvers):
        return Ruling(verdict="deny", rule=clip_line(f"nobody may approve this under both rules: {line}"))
    timeouts = [ruling.timeout_s for ruling in (left, right) if ruling.timeout_s is not None]
    return Ruling(
        verdict="ask",
        rule=line,
        approvers=approvers,
        quorum=quorum,
        timeout_s=min(timeouts, default=None),
        on_expiry=max(left.on_expiry, right.on_expiry, key=lambda at_expiry: _AT_EXPIRY[at_expiry]),
        no_self_approval=left.no_self_approval or right.no_self_approval,
        verified=left.verified or right.verified,
        remind_after_s=min((r.remind_after_s for r in (left, right) if r.remind_after_s is not None), default=None),
        escalate_to=_escalated(left, right, approvers),
        unseen=left.unseen or right.unseen,
        minds=tuple(dict.fromkeys((*left.minds, *right.minds))),
    )


def _escalated(left: Ruling, right: Ruling, approvers: tuple[str, ...]) -> tuple[str, ...]:
    """Return who may decide later under both rulings; where neither names anybody, whom either of them tells.

    It is asked again as soon as either says so; nobody may decide then who may not before a later time.
    """
    soonest = min((ruling.timeout_s for ruling in (left, right) if ruling.timeout_s is not None), default=None)
    named = [{*ruling.approvers, *ruling.escalated_after(soonest)} for ruling in (left, right) if ruling.approvers]
    if not named:
        return tuple(sorted({*left.escalate_to, *right.escalate_to}))
    return tuple(sorted(reduce(set.intersection, named) - set(approvers)))


def rule_on_change(ruling: Ruling, tool: str) -> Ruling:
    """Rule on a call of a tool whose definition is none of those last allowed."""
    if ruling.verdict == "deny":
        return ruling
    shown = one_line(tool, 100)
    # A server chose the name, and a person may paste the command.
    line = f"definition: {shown} has changed since it was last allowed; see backstay tools diff {shell_words(shown)}"
    more = "" if ruling.verdict == "allow" else f"; {ruling.rule}"
    return ruling.model_copy(update={"verdict": "ask", "rule": clip_line(line + more)})
