"""Say who may decide: the people whom rules name, for calls, for a run as a whole, for secrets and for later runs."""

from collections.abc import Collection, Sequence
from typing import Any

from backstay.authority import NOBODY, Authority, principal
from backstay.errors import BackstayError, DecisionRefused, NotVerified
from backstay.policies.glob import matches
from backstay.policies.policy import Policy
from backstay.policies.rule import Rule
from backstay.policies.ruling import Ruling
from backstay.redaction.handles import label_of, provider_of

WORDS_HOLD_S = 24 * 3600.0
"""How long the word of one of several people holds where no rule says it."""


def refused_person(authority: Authority, by: str, proof: str | None, starters: Collection[str]) -> BackstayError | None:
    """Return why somebody may not decide, or None; the proof itself is checked elsewhere.

    `starters` are the names of the person who started the run; empty when nobody proved who that was.
    """
    if not authority.restricts:
        return None
    by, starters = principal(by), frozenset(map(principal, starters))
    if proof is None:
        return NotVerified(
            "proof: required, because the policy names who may decide; decide through a gateway that signs decisions"
        )
    if authority.quorum >= NOBODY:
        return DecisionRefused(
            "by: nobody may decide about all of this, because the rules name different people; decide about less"
        )
    if authority.approvers and by not in map(principal, authority.approvers):
        return DecisionRefused(f"by: {by} is not an approver; the rule names {', '.join(authority.approvers)}")
    if authority.no_self_approval and not starters:
        return DecisionRefused(
            "by: the rule forbids approving one's own run, and nobody proved who started this one; "
            "start it with `by` and `proof`"
        )
    if authority.no_self_approval and by in starters:
        return DecisionRefused(f"by: {by} started this run and the rule forbids approving one's own")
    return None


def constraint(ruling: Ruling) -> tuple[Any, ...]:
    """Return what calls must share in order to be asked about in one request: who may decide, and who may later."""
    later = (ruling.escalate_to, ruling.timeout_s) if ruling.escalate_to else ()
    return (ruling.approvers, ruling.quorum, ruling.no_self_approval, ruling.verified, later)


def authority_over_run(policy: Policy) -> Authority:
    """Return who may change a run as a whole: raise its limits, pause, resume or stop it.

    Only the operator's rules count: a task must not take its run from the people who watch over it, nor give it to
    others. Where none restricts who decides, that is everybody; else each verified person whom a restricting rule
    names, or any verified person when a restricting rule names nobody.
    """
    return _people_of((policy.operators,))


def restricts_anybody(policy: Policy) -> bool:
    """Return whether a rule, of the operator or of a task, restricts who decides."""
    return _people_of(policy.layers).restricts


def _people_of(layers: Sequence[Policy]) -> Authority:
    restricting = [
        (layer, rule)
        for layer in layers
        for rule in (*layer.ask, *layer.undo.ask)
        if rule.approvers or rule.quorum > 1 or rule.no_self_approval
    ]
    if not restricting:
        return Authority()
    named = [layer.persons(rule) for layer, rule in restricting]
    return Authority(
        approvers=tuple(sorted({person for persons in named for person in persons})) if all(named) else (),
        quorum=1,
        no_self_approval=any(rule.no_self_approval for _, rule in restricting),
        verified=True,
    )


def words_hold_s(policy: Policy, tools: Collection[str]) -> float:
    """Return for how many seconds the word of one of several people holds about these tools.

    So for undoing what they did, and for what is to be remembered of them.

    It is the shortest timeout of the operator's rules that ask several people about one of them, or a day.
    """
    rules = (*policy.operators.ask, *policy.operators.undo.ask)
    asking = [rule for rule in rules if rule.quorum > 1 and any(matches(rule.tool, tool) for tool in tools)]
    return min((rule.timeout for rule in asking if rule.timeout is not None), default=WORDS_HOLD_S)


def accepting_of(policy: Policy) -> Authority | None:
    """Return whose decisions later runs may obey; None where the operator's policy names nobody."""
    operators = policy.operators
    named = operators.accepting
    if named is None:
        return None
    return Authority(
        approvers=operators.persons(named), quorum=named.quorum, no_self_approval=named.no_self_approval, verified=True
    )


def authority_in_run(policy: Policy) -> Authority:
    """Return whose decisions the run itself may obey from then on: with `accepting` only those people."""
    return accepting_of(policy) or authority_over_run(policy)


def authority_over_secret(policy: Policy, handle: str) -> Authority:
    """Return who may be shown a secret: the people of the rule that names it, else the people of the run.

    A task's own rule can only narrow that. Raises DecisionRefused for what a rule shows to nobody.
    """
    name = f"{provider_of(handle)}.{label_of(handle)}"
    for layer in policy.layers:
        if (denied := _naming(layer.reveal.deny, name)) is not None:
            raise DecisionRefused(f"handle: shown to nobody, by the rule reveal.deny: {denied.line}")
    authority: Authority | None = None
    for layer in reversed(policy.layers):
        found = _naming(layer.reveal.ask, name)
        if found is not None:
            named = Authority(
                approvers=layer.persons(found), quorum=found.quorum, no_self_approval=found.no_self_approval
            )
            authority = named if authority is None else authority.also(named)
        # A decision that the operator leaves to the people of the run cannot be given to others by a task's own rule.
        authority = authority or _who_sees(policy)
    return authority or Authority()


def _who_sees(policy: Policy) -> Authority:
    """Return who may be shown secrets about which no rule says it; the operator leaves them to a task's people."""
    run = authority_over_run(policy)
    return (run if run.restricts else _people_of(policy.layers)).for_stopping()


def _naming(rules: tuple[Rule, ...], name: str) -> Rule | None:
    return next((rule for rule in rules if matches(rule.tool, name)), None)
