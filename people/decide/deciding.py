"""Send what a person decides to its run: admitted once, proven to be theirs, and for exactly what they were shown."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from backstay.approvals.admission import DecisionInvalid, admit
from backstay.approvals.approval import Approval, ApprovalRequest, Verdict
from backstay.approvals.proof import ShownRequest
from backstay.approvals.verdicts import most_permissive, verdict_words
from backstay.canonical import canonical
from backstay.client import Backstay, Run
from backstay.errors import DecisionRefused
from backstay.policies.accepted import AcceptedLine, remembered_words
from backstay.policies.learning.alike import Alike
from backstay.shown import message_line, one_line
from people.decide.looking import KnownRequest, require_same, service_words
from people.requests.entered import FormEntry
from people.requests.form import DecisionForm, decision_of
from people.requests.key import RequestKey

_INSTEAD = "open it on the page, or at a terminal with backstay attach"


async def decide(
    run: Run,
    known: KnownRequest,
    said: Mapping[str, Any] | FormEntry,
    *,
    by: str,
    shown: ShownRequest,
    hidden: str = "",
    instead: str = _INSTEAD,
    once: Sequence[Any] = (),
    by_name: bool = False,
    services: Collection[str] = (),
) -> dict[str, Any]:
    """Decide a request in a person's name; the run signs where its handle has the key of approvers.

    `said`: what the person entered, or fields of an Approval as a program sends them. `hidden`: what they were not
    shown of the request, in words, and `instead` what shows them all of it. `once`: what was done at a door, and does
    nothing again: the door, and what is its own. `by_name`: they named the request; only `shown` says what they saw.
    `services`: who acts for others, and so answers questions but decides nothing else.
    Raises Stale, DecisionRefused, DecisionInvalid, EntryRefused or NotVerified.
    """
    require_same(known, shown)
    _require_person(known, by, services)
    bound = _bound(known, shown)
    said = decision_of(DecisionForm.of(known.request), said) if isinstance(said, FormEntry) else said
    if said.get("request_id", known.request_id) != known.request_id:
        raise DecisionInvalid(f"request_id: this address decides {one_line(known.request_id, 40)}; leave it out")
    seen = shown if by_name else bound
    decision = {"args_digest": seen.args_digest or None, **said, "request_id": known.request_id, "by": by}
    approval = admit(decision)
    if once:
        # A copy of a form of others, or of one's own with changes, gets no answer that was given before.
        event_id = _event_id(str(once[0]), [by, known.workflow_id, bound.run_id, *once, decision])
        approval = approval.model_copy(update={"event_id": event_id})
    if hidden and most_permissive(approval) is Verdict.APPROVE:
        raise DecisionRefused(
            f"verdict: all of it must be shown before it is approved, and this was not: {hidden}; {instead}"
        )
    return await run.decide(await _proven(run, approval, bound))


def _require_person(known: KnownRequest, by: str, services: Collection[str]) -> None:
    if known.request is not None and (refused := service_words(known.request, by, services)):
        raise DecisionRefused(f"by: {refused}")


async def _proven(run: Run, approval: Approval, bound: ShownRequest) -> Approval:
    if not run.signs or not bound.run_id:
        return approval
    proven = await run.sign("decide", json.loads(approval.model_dump_json(exclude_defaults=True)), shown=bound)
    return approval.model_copy(update={"proof": proven["proof"]})


async def decide_shown(
    backstay: Backstay,
    key: RequestKey,
    known: KnownRequest,
    entered: FormEntry,
    *,
    by: str,
    hidden: str,
    once: Sequence[Any],
) -> dict[str, Any]:
    """Decide a request that a chat shows, as `decide` does; `backstay` signs it."""
    run = backstay.run(key.workflow_id)
    return await decide(run, known, entered, by=by, shown=key.shown, hidden=hidden, once=once)


ASKED_AGAIN = "it is asked again with the change, and nothing is sent before that"


def state_words(answer: Mapping[str, Any]) -> str:
    """Return whether a decision has decided its request, or counts as one of several that are needed."""
    state = str(answer.get("state") or "decided")
    return "recorded; it waits for others" if state == "recorded" else one_line(state, 100)


def outcome_words(answer: Mapping[str, Any], by: str) -> list[str]:
    """Return what a person is told after they have decided, at whatever door; a remembered choice is apart."""
    said = [f"{state_words(answer)}: {verdict_words(answer.get('verdict'))} by {by}"]
    return [one_line(part, 300) for part in (*said, *([ASKED_AGAIN] if answer.get("asked_again") else ()))]


def remembered_line(key: RequestKey, answer: Mapping[str, Any]) -> str:
    """Return what is remembered of a decision, for whoever made it among others; empty where nothing is."""
    held = [words for line in answer.get("remembered", ()) for words in remembered_words(line)]
    return message_line(f"{key.workflow_id} {key.request_id}: {'; '.join(held)}", 1500) if held else ""


def is_remembered_so(workflow_id: str, request: ApprovalRequest, how: str, arguments: str, line: AcceptedLine) -> bool:
    """Return whether a line says what a person has said about these calls.

    `how` and `arguments`: what they chose for `remember` and `remember_arguments`.
    """
    shown = {(call.tool, call.args_digest if arguments == "these" else "") for call in request.calls}
    found = DecisionForm.of(request).alike if arguments == "alike" else None
    conditions = (found.when, found.only) if isinstance(found, Alike) else (None, ())
    return (line.when, line.only) == conditions and (
        (line.tool, line.args_digest) in shown
        and (line.verdict, line.scope) == (("deny", "always") if how == "never" else ("allow", how))
        and line.request == f"{workflow_id} {request.id}"
    )


def _event_id(door: str, about: Sequence[Any]) -> str:
    return f"{door}-{hashlib.sha256(canonical(about).encode('utf-8', 'replace')).hexdigest()[:40]}"


def _bound(known: KnownRequest, shown: ShownRequest) -> ShownRequest:
    """Return what a decision is bound to: the request as it was shown, and as it is where nobody says what was."""
    request = known.request
    if request is None:
        return shown
    now = ShownRequest.of(request)
    return ShownRequest(
        run_id=shown.run_id or now.run_id,
        digest=shown.digest or now.digest,
        args_digest=shown.args_digest or now.args_digest,
    )
