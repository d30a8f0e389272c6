"""Look at a request as the store and its run know it, and tell whether it is still the one that a person was shown."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from backstay.approvals.admission import NOT_OPEN, DecisionInvalid
from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.layout import changed_lines
from backstay.approvals.proof import ShownRequest
from backstay.approvals.verdicts import verdict_words
from backstay.approvals.whole import unseen
from backstay.client import Backstay, Run
from backstay.errors import BackstayError, DecisionRefused, RunNotFound
from backstay.shown import one_line, shell_words
from people.requests.key import RequestKey
from people.requests.posted import PostedRequest

if TYPE_CHECKING:
    # A terminal decides without a store, and need not wait until all of it is loaded.
    from store.notices.requests import RequestRow
    from store.store import Store

_CLOSED = {"expired": "nobody decided in time", "withdrawn": "it was no longer needed", "ended": "the run has ended"}
_MOST_CHANGES = 20
ASKED_S = 5.0
"""How long a run has to say what it waits for, before a request is posted as the store knows it."""
_LOOKS, _LOOK_S = 20, 0.1
"""How often, and how long apart, a run is looked at that is about to ask again."""


class Stale(DecisionRefused):
    """The request is no longer the one that was shown."""


class KnownRequest(NamedTuple):
    """Hold a request as the store and its run know it."""

    workflow_id: str
    request_id: str
    row: "RequestRow | None"
    live: ApprovalRequest | None
    """What the run says now; None when it does not wait, or cannot be asked."""
    trouble: str = ""
    """Why the run cannot be asked; empty when it can."""
    ended: bool = False
    """Whether there is no run any more that could wait."""
    run_id: str = ""
    """The run that bears the name now; empty where it did not say."""

    @property
    def became(self) -> str:
        """Return what became of it; empty while it waits, and where nobody can know."""
        if self.live is not None:
            return ""
        if self.row is not None and self.row.state != "open":
            return self.row.state
        return "ended" if self.ended else ""

    @property
    def may_wait(self) -> bool:
        """Return whether it waits, as its run says, or as the store has it of a run that cannot be asked.

        The store hears of a decision a moment after the run has taken it.
        """
        return self.live is not None or (bool(self.trouble) and not self.became)

    @property
    def request(self) -> ApprovalRequest | None:
        """Return the request, as it waits now or as it was asked."""
        if self.live is not None or self.row is None:
            return self.live
        return ApprovalRequest.model_validate(self.row.request)

    @property
    def waiting(self) -> ApprovalRequest:
        """Return the request that waits; raises DecisionRefused, saying what became of it, when it does not."""
        if self.live is not None:
            return self.live
        raise DecisionRefused(self._gone)

    @property
    def _gone(self) -> str:
        if self.row is not None and self.row.decision is not None:
            return (
                f"this request is decided already: {verdict_words(self.row.decision.verdict)} by {self.row.decision.by}"
            )
        if self.row is not None and self.row.state in _CLOSED:
            return f"this request is closed: {_CLOSED[self.row.state]}"
        return self.trouble or "this request no longer waits"


async def look(run: Run, store: "Store | None", request_id: str, run_id: str | None = None) -> KnownRequest:
    """Return a request as the store keeps it and as its run says that it is now; the store is told of new votes.

    `store` is None at a door that has none; `run_id` is that of the run which asked, by default of the newest one.
    """
    row = None if store is None else await store.requests.get(run.id, request_id, run_id)
    known = KnownRequest(run.id, request_id, row, None)
    try:
        if not await run.is_open():
            # A run that has ended still answers queries, as it was at its end.
            return known._replace(ended=True)
        status = await run.status()
    except RunNotFound as error:
        return known._replace(trouble=one_line(str(error), 300), ended=True)
    except DecisionRefused:
        return known._replace(ended=True)
    except BackstayError as error:
        return known._replace(trouble=one_line(str(error), 300))
    live = next((request for request in status.pending if request.id == request_id), None)
    if live is not None and row is not None and live.run_id not in {"", row.run_id}:
        # Another run has this workflow id now; of the one that was asked for there is nothing to ask.
        live = None if run_id else live
        row = row if run_id else None
    votes = [] if live is None else [*live.decided]
    if store is not None and row is not None and live is not None and row.request.get("decided", []) != votes:
        await store.requests.keep_votes(row, votes)
    return known._replace(row=row, live=live, run_id=status.run_id)


def require_same(known: KnownRequest, shown: ShownRequest) -> None:
    """Raise Stale, saying why, when a request is no longer the one that was shown.

    Of one that does not wait, its run says itself what has become of it.
    """
    request = known.live
    run_id, why = known.run_id or ("" if known.row is None else known.row.run_id), ""
    if shown.run_id and run_id and shown.run_id != run_id:
        why = "it was of an earlier run of the same name, and it has changed; look at it again"
    elif request is not None and shown.digest and shown.digest != request.digest:
        why = "it is another request than the one that waits now, or it has changed; look at it again"
    if why:
        raise Stale(f"{NOT_OPEN}{one_line(known.request_id, 40)} as it was shown to you: {why}")


async def require_digest(run: Run, known: KnownRequest, given: str | None, *, field: str) -> None:
    """Raise DecisionInvalid, saying what it is of, for a digest of arguments that is none of a request that waits.

    `field` is what it is called where it was given.
    """
    request = known.live
    if request is None or given in {None, request.args_digest}:
        return
    look_at = f"look at it with: backstay show {shell_words(run.id)} {shell_words(request.id)}"
    if given and request.args_digest.startswith(given):
        raise DecisionInvalid(f"{field}: it is cut; give all {len(request.args_digest)} characters")
    same = next((other.id for other in await run.pending() if other.args_digest == given), None)
    if same is not None:
        raise DecisionInvalid(f"{field}: it is that of {same}, and not of {request.id}; {look_at}")
    what = "asks about no arguments; leave it out, or" if not request.args_digest else "is about other arguments;"
    which = f"{request.id} of {one_line(run.id, 100)}"
    raise DecisionInvalid(f"{field}: stale, or of another request or run: {which} {what} {look_at}")


def not_shown(request: ApprovalRequest, shown_whole: Collection[str]) -> str:
    """Return in words what a person was not shown of a request; `shown_whole` are digests of what they saw whole."""
    return "" if request.digest in shown_whole else unseen(request)


async def look_shown(backstay: Backstay, store: "Store", key: RequestKey) -> KnownRequest:
    """Return a request that waits; raises DecisionRefused when it does not, or is not the one that was shown."""
    known = await look(backstay.run(key.workflow_id), store, key.request_id, key.run_id)
    require_same(known, key.shown)
    _ = known.waiting
    return known


async def posted_request(backstay: Backstay, row: "RequestRow") -> PostedRequest:
    """Return a request with the votes that the run has by now; the run says whether it waits."""
    request = ApprovalRequest.model_validate(row.request)
    posted = PostedRequest(workflow_id=row.workflow_id, request=request, state=row.state, decision=row.decision)
    if row.state != "open":
        return posted
    with suppress(BackstayError, TimeoutError):
        async with asyncio.timeout(ASKED_S):
            status = await backstay.run(row.workflow_id).status()
        same = [live for live in status.pending if live.id == row.request_id and status.run_id == row.run_id]
        return posted.model_copy(update={"request": same[0]} if same else {"waits": False})
    # No worker answers; the person who presses a button is told so.
    return posted


async def arguments_of(run: Run, request: ApprovalRequest, index: int) -> dict[str, Any]:
    """Return the arguments of a call, whole; where no call waits, such as one whose outcome is asked, as shown.

    Raises DecisionRefused for a call that is not asked about.
    """
    shown = next((call.arguments for call in request.calls if call.index == index), None)
    if shown is None:
        raise DecisionRefused(f"{one_line(request.id, 40)} asks about no call {index}; look at it again")
    try:
        return await run.arguments(request.id, index)
    except DecisionRefused:
        return shown


async def asked_again(run: Run) -> str:
    """Return the id of the request in which a run asks again about what was changed; empty where it does not yet."""
    with suppress(BackstayError):
        for _ in range(_LOOKS):
            waiting = await run.pending()
            changed = [request for request in waiting if any(call.changed for call in request.calls)]
            if changed:
                return changed[-1].id
            await asyncio.sleep(_LOOK_S)
    return ""


def service_words(request: ApprovalRequest, by: str, services: Collection[str]) -> str:
    """Return why a service does not decide a request; empty for persons, and for questions, which anybody answers."""
    if by not in services or request.kind in {RequestKind.QUESTION, RequestKind.ELICITATION}:
        return ""
    return f"{one_line(by, 80)} is a service that acts for others (BACKSTAY_MAY_ACT_FOR); only a person may decide this"


def hindrance(request: ApprovalRequest, by: str, *, signs: bool, services: Collection[str] = ()) -> str:
    """Return why a person cannot decide a request, as far as a door can know; empty when nothing speaks against it.

    The run itself decides; this only spares people buttons that it would refuse.
    """
    if refused := service_words(request, by, services):
        return f"{refused}."
    named = request.deciders
    if named and by not in named:
        return f"Only these people may decide this: {', '.join(sorted(named))}."
    parts = () if request.proposal is None else request.proposal.parts
    restricts = request.authority.restricts if request.proposal is None else any(p.authority.restricts for p in parts)
    if restricts and not signs:
        return "Only verified people may decide this, and this page has no approver key to verify anybody."
    votes = [vote for vote in request.decided if vote.get("by") == by]
    if request.kind in {RequestKind.CALL, RequestKind.BATCH} and votes:
        return f"You have decided: {verdict_words(votes[-1].get('verdict'))}. It waits for others."
    open_parts = [part for part in parts if not part.complete and (not part.approvers or by in part.approvers)]
    if parts and all(any(vote.get("by") == by for vote in part.decided) for part in open_parts):
        return "You have decided your part. It waits for others."
    return ""


def still_asked(request: ApprovalRequest, person: str) -> bool:
    """Return whether a request waits for the word of somebody whom it asks; of a plan, about a part that is open."""
    parts = () if request.proposal is None else request.proposal.parts
    if not parts:
        # People who must agree and do not wait for each other: each may change what they said.
        agreed = len({(vote.get("verdict"), vote.get("answer")) for vote in request.decided}) < 2
        return not agreed or not _has_voted(request.decided, person)
    mine = [part for part in parts if not part.complete and (not part.approvers or person in part.approvers)]
    return any(not _has_voted(part.decided, person) for part in mine)


def _has_voted(votes: tuple[Mapping[str, Any], ...], person: str) -> bool:
    return any(vote.get("by") == person for vote in votes)


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
