"""Send what a person decides to its run, proven to be theirs, and for exactly what they were shown."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.deciding import NOT_OPEN, DecisionInvalid, admit
from backstay.approvals.layout import changed_lines
from backstay.approvals.proof import Binding
from backstay.canonical import canonical
from backstay.client.run import signed
from backstay.errors import BackstayError, DecisionRefused, RunNotFound
from backstay.policies.accepted import remembered_words
from backstay.shown import one_line
from gateways.web.identity import Visitor
from gateways.web.page import Page
from gateways.web.sent import text_in, without_names
from store.notices.requests import RequestRow

_MOST_CHANGES = 20
_LOOKS, _LOOK_S = 20, 0.1
"""How often, and how long apart, a run is looked at that is about to ask again."""


class Shown(NamedTuple):
    """Name the request as the person had it before their eyes."""

    run_id: str
    digest: str
    args_digest: str = ""
    nonce: str = ""
    """Made with the form, so that a second click on it is the same decision."""


class Stale(DecisionRefused):
    """The request is no longer the one that was shown."""


class Asked(NamedTuple):
    """Hold a request as the store and its run know it."""

    workflow_id: str
    row: RequestRow | None
    live: ApprovalRequest | None
    """What the run says now; None when it does not wait, or cannot be asked."""
    trouble: str
    """Why the run cannot be asked; empty when it can."""
    ended: bool = False
    """Whether there is no run any more that could wait."""

    @property
    def became(self) -> str:
        """Return what became of it; empty while it waits, and where nobody can know."""
        if self.live is not None:
            return ""
        if self.row is not None and self.row.state != "open":
            return self.row.state
        return "ended" if self.ended else ""

    @property
    def request(self) -> ApprovalRequest | None:
        """Return the request, as it waits now or as it was asked."""
        if self.live is not None or self.row is None:
            return self.live
        return ApprovalRequest.model_validate(self.row.request)


async def asked(page: Page, workflow_id: str, request_id: str, run_id: str | None = None) -> Asked:
    """Return a request, as the store keeps it and as its run says that it is now; the store is told of new votes."""
    row, run = await page.store.requests.get(workflow_id, request_id, run_id), page.unsigned.run(workflow_id)
    try:
        if not await run.is_open():
            # What has ended still answers queries, as it stood at its end.
            return Asked(workflow_id, row, None, "", ended=True)
        pending = await run.pending()
    except (RunNotFound, DecisionRefused):
        return Asked(workflow_id, row, None, "", ended=True)
    except BackstayError as error:
        return Asked(workflow_id, row, None, one_line(str(error), 300))
    live = next((request for request in pending if request.id == request_id), None)
    if live is not None and row is not None and live.run_id not in {"", row.run_id}:
        # Another run has this workflow id now; of the one that was asked for there is nothing to ask.
        live = None if run_id else live
        row = row if run_id else None
    if live is not None and row is not None and row.request.get("decided", []) != (votes := [*live.decided]):
        await page.store.requests.keep_votes(row, votes)
    return Asked(workflow_id, row, live, "")


async def asked_again(page: Page, workflow_id: str) -> str:
    """Return the id of the request in which a run asks again about what was changed; empty where it does not yet."""
    with suppress(BackstayError):
        for _ in range(_LOOKS):
            waiting = await page.unsigned.run(workflow_id).pending()
            changed = [request for request in waiting if any(call.changed for call in request.calls)]
            if changed:
                return changed[-1].id
            await asyncio.sleep(_LOOK_S)
    return ""


async def decide(page: Page, visitor: Visitor, known: Asked, said: dict[str, Any], shown: Shown) -> dict[str, Any]:
    """Decide a request in the name of a visitor; raises Stale, DecisionRefused, DecisionInvalid or NotVerified."""
    request, workflow_id = known.request, known.workflow_id
    if request is None:
        raise RunNotFound("request_id: there is no such request")
    require_same(known, shown)
    bound = Shown(shown.run_id or request.run_id, shown.digest or request.digest, shown.args_digest, shown.nonce)
    payload = _payload(visitor, workflow_id, request, said, bound)
    if page.key is not None:
        payload = signed(page.key, _binding(page, workflow_id, request.id, bound), payload)
    # The same decision of the same form is the same event: the run, or Temporal once it has ended, repeats its answer.
    answer = await page.unsigned.run(workflow_id).decide(payload)
    if answer.get("state") == "recorded":
        # The vote counts whether or not the store hears of it now.
        with suppress(BackstayError):
            await asked(page, workflow_id, request.id)
    return answer


def _payload(
    visitor: Visitor, workflow_id: str, request: ApprovalRequest, said: dict[str, Any], bound: Shown
) -> dict[str, Any]:
    """Return a decision in the form in which it is sent, and so signed."""
    if said.get("request_id", request.id) != request.id:
        raise DecisionInvalid(f"request_id: this address decides {one_line(request.id, 40)}; leave it out")
    decision = {"args_digest": bound.args_digest or request.args_digest or None, **said}
    decision |= {"request_id": request.id, "by": visitor.by}
    if bound.nonce:
        # Whoever copies a form of others, or changes what theirs says, gets no answer that was given before.
        about = [visitor.by, workflow_id, bound.run_id, bound.nonce, decision]
        decision["event_id"] = f"page-{hashlib.sha256(canonical(about).encode('utf-8', 'replace')).hexdigest()[:40]}"
    return json.loads(admit(decision).model_dump_json(exclude_defaults=True))


def _binding(page: Page, workflow_id: str, request_id: str, bound: Shown) -> Binding:
    return Binding(
        namespace=page.backstay.client.namespace,
        workflow_id=workflow_id,
        run_id=bound.run_id,
        update="decide",
        request_id=request_id,
        digest=bound.digest,
    )


def require_same(known: Asked, shown: Shown) -> None:
    """Raise Stale, saying what has changed, when a request is no longer the one that was shown."""
    request = known.request
    if request is None or not (shown.run_id or shown.digest):
        return
    differs = [shown.run_id and shown.run_id != request.run_id, shown.digest and shown.digest != request.digest]
    if known.live is None:
        # Nothing to compare: the run says itself what has become of the request.
        differs = [shown.run_id and known.row is not None and shown.run_id != known.row.run_id]
    if any(differs):
        raise Stale(f"{NOT_OPEN}{one_line(request.id, 40)} as it was shown to you: it has changed; look at it again")


def differences(before: ApprovalRequest, now: ApprovalRequest) -> list[str]:
    """Return in lines what has changed between a request that was shown and the one that waits now."""
    return list(_differences(before, now))[:_MOST_CHANGES]


def _differences(before: ApprovalRequest, now: ApprovalRequest) -> Iterator[str]:
    if before.run_id != now.run_id:
        yield f"it is another run of the same name, whose task is: {now.task or 'not said'}"
    if before.question != now.question:
        yield f"the question: {before.question} -> {now.question}"
    was = {call.index: call for call in before.calls}
    for call in now.calls:
        old = was.pop(call.index, None)
        if old is None or old.tool != call.tool:
            yield f"call {call.index}: {old.tool if old else 'nothing'} -> {call.tool}"
        else:
            yield from (f"call {call.index}: {line}" for line in changed_lines(old.arguments, call.arguments))
    yield from (f"call {index}: {old.tool} -> nothing" for index, old in was.items())


def from_program(visitor: Visitor, body: dict[str, Any]) -> tuple[dict[str, Any], Shown]:
    """Return the decision that a program sends, and what it was shown; raises DecisionInvalid for another's name."""
    said = without_names(visitor, body)
    shown = Shown(*(text_in(said, name) for name in ("f", "d")))
    return {name: value for name, value in said.items() if name not in {"f", "d"}}, shown


def outcome_words(answer: dict[str, Any], visitor: Visitor) -> str:
    """Return what people are told after they have decided."""
    state = "recorded; it waits for others" if answer.get("state") == "recorded" else "decided"
    said = [f"{state}: {answer.get('verdict')} by {visitor.by}"]
    if answer.get("asked_again"):
        said.append("it is asked again with the change, and nothing is sent before that")
    for line in answer.get("remembered", ()):
        said += remembered_words(line)
    return "; ".join(one_line(part, 300) for part in said)
