"""Say in words what belongs to a decision beside its verdict: what it leaves out, narrows and stops."""

from collections.abc import Iterator, Mapping
from typing import Any

from backstay.approvals.approval import RecordedDecision, Verdict
from backstay.approvals.notice import DecisionNotice
from backstay.approvals.proposal import LIMITS
from backstay.policies.accepted import HOLDS

_LIMIT = {
    "timeout_s": "{:g} s",
    "memory_mb": "{:g} MB of memory",
    "cpu_s": "{:g} s of processor time",
    "artifacts_mb": "{:g} MB written",
}


def decided_words(decision: DecisionNotice | RecordedDecision | Mapping[str, Any]) -> list[str]:
    """Return what people read of a decision beside its verdict, who made it and their comment; also of its JSON."""
    known = RecordedDecision.model_validate(decision) if isinstance(decision, Mapping) else decision
    return list(_words(known))


def _words(decision: DecisionNotice | RecordedDecision) -> Iterator[str]:
    if decision.option == "dry_run_only":
        yield "a dry run only"
    if decision.left_out:
        yield _without("step", decision.left_out)
    elif decision.verdict != Verdict.REJECT:
        rejected = tuple(index for index, verdict in sorted(decision.calls.items()) if verdict == Verdict.REJECT)
        if rejected:
            yield _without("call", rejected)
    if decision.toggles is not None:
        if decision.toggles.external_processes is False:
            yield "it may start no processes"
        for name in LIMITS:
            most = getattr(decision.toggles.limits, name, None)
            if most is not None:
                yield f"at most {_LIMIT[name].format(most)} for a step"
    if decision.asked_again:
        yield "asked again with the change, before anything is sent"
    if decision.stop:
        yield "it ends the run"
    if decision.remember:
        yield f"to be remembered for {HOLDS.get(decision.remember, decision.remember)}"


def _without(what: str, indexes: tuple[int, ...]) -> str:
    return f"without {what}{'s' if len(indexes) > 1 else ''} {', '.join(map(str, indexes))}"
