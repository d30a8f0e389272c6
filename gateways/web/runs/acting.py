"""Do what people ask of a run: undo it, give it more, hold it, tell it something, end it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from backstay.approvals.admission import DecisionInvalid
from backstay.bounds import MOST
from backstay.budgets.budget import TopUp
from backstay.client import Run
from backstay.errors import DecisionRefused, QuorumPending, Unreachable
from backstay.shown import counted, one_line
from gateways.web.guard import error_body, is_for_programs
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes, run_path
from gateways.web.runs.showing import undo_view
from gateways.web.sent import Submission, text_in, without_names
from people.runs.finding import KnownRun, find
from people.runs.undoing import UndoPreview, authority_over, preview, require_may_stop

_LONGEST_EVENT = 200
_TAKEN_S = 30.0
"""How long a browser waits to hear that a worker has taken the wish for an undo."""
_UNDO_S = 10.0
"""How long it then waits for the end of the undo; a longer one goes on by itself."""
_LIMITS = {"max_steps": int, "max_tool_calls": int, "max_code_runs": int, "max_llm_cost_usd": float, "max_tokens": int}
"""What the form can raise."""

_FIELDS = {
    "pause": {"reason"},
    "resume": {"reason"},
    "message": {"text", "event_id"},
    "top_up": {*TopUp.model_fields, "event_id"},
    "cancel": {"confirm"},
    "undo": {"to_step", "confirm"},
    "undone_by_hand": {"effect", "comment"},
}
"""What programs may send; who they are is known."""
_CONFIRMED = frozenset({"undo", "cancel"})
"""What is done only after people have seen what it undoes."""
Deed = Callable[[KnownRun, Run, dict[str, Any], str], Awaitable[tuple[str, Any]]]
"""Does something to a run with what was sent, in a person's name; returns what people and programs are told."""


class Acting:
    """Do things to runs in the name of the visitor; the run itself checks whether that person may."""

    def __init__(self, page: PageRoutes) -> None:
        """Use the connection of the page, which signs what people do."""
        self._page = page
        self._going_on: set[asyncio.Task[Any]] = set()

    async def pause(self, found: KnownRun, run: Run, said: dict[str, Any], by: str) -> tuple[str, Any]:
        """Hold the run before its next step or call."""
        answer = await run.pause(text_in(said, "reason"), by=by)
        return _voted(answer) or "The run is paused before its next step.", answer

    async def resume(self, found: KnownRun, run: Run, said: dict[str, Any], by: str) -> tuple[str, Any]:
        """Let a paused run go on."""
        answer = await run.resume(text_in(said, "reason"), by=by)
        return _voted(answer) or "The run goes on.", answer

    async def message(self, found: KnownRun, run: Run, said: dict[str, Any], by: str) -> tuple[str, Any]:
        """Tell the model of the run something."""
        answer = await run.message(text_in(said, "text"), by=by, event_id=_event(said) or None)
        return "The run has your message; the model reads it at its next step.", answer

    async def top_up(self, found: KnownRun, run: Run, said: dict[str, Any], by: str) -> tuple[str, Any]:
        """Raise limits of the run."""
        more = {name: value for name, value in said.items() if name != "event_id"}
        event_id = _event(said)
        if not more:
            raise DecisionInvalid("max_steps: say how much to add to at least one limit")
        if wrong := next((name for name, value in more.items() if isinstance(value, bool | str)), None):
            raise DecisionInvalid(f"{wrong}: must be a number, without quotes")
        TopUp.admit(more)
        if event_id:
            more["event_id"] = event_id
        answer = await run.top_up(by=by, **more)
        return _voted(answer) or "The limits are raised.", answer

    async def cancel(self, found: KnownRun, run: Run, said: dict[str, Any], by: str) -> tuple[str, Any]:
        """End the run; its effects are undone, unless its task says otherwise or the policy restricts who decides."""
        if not found.is_open:
            raise DecisionRefused("the run has ended already")
        # Temporal's own cancellation carries no proof, so the run cannot check who asks: this door must.
        require_may_stop(found, by, signs=self._page.key is not None)
        await run.cancel()
        return "The run is being cancelled.", {}

    async def undo(self, found: KnownRun, run: Run, said: dict[str, Any], by: str) -> tuple[str, Any]:
        """Take effects back: within the run while it is open, and by a run of its own after its end."""
        to_step, seen = said.get("to_step"), said["last_seen"]
        if not found.is_open:
            undoing = await run.start_undo(to_step, last_seen=seen, by=by)
            return "The undo has begun; what becomes of it is shown here.", {"workflow_id": undoing.id}
        taken = asyncio.Event()
        task = asyncio.create_task(run.undo(to_step, last_seen=seen, by=by, taken=taken))
        hearing = asyncio.create_task(taken.wait())
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)
        await asyncio.wait({task, hearing}, timeout=_TAKEN_S, return_when=asyncio.FIRST_COMPLETED)
        hearing.cancel()
        done, _ = await asyncio.wait({task}, timeout=_UNDO_S if taken.is_set() else 0)
        if not done:
            task.add_done_callback(_seen)
            if not taken.is_set():
                raise Unreachable("nobody has answered whether this is undone; it may still happen, so look again")
            return "The undo is under way; what becomes of it is shown here.", {"state": "under way"}
        undone = task.result()
        words = f"{counted(len(undone), 'effect')} dealt with; see below what became of each."
        return words, {"undone": [each.plain() for each in undone]}

    async def undone_by_hand(self, found: KnownRun, run: Run, said: dict[str, Any], by: str) -> tuple[str, Any]:
        """Record that the visitor took a parked effect back by hand; nothing is called."""
        effect = said.get("effect")
        if not isinstance(effect, int) or isinstance(effect, bool):
            raise DecisionInvalid("effect: the number of the effect that you undid by hand")
        if found.is_open:
            raise DecisionRefused("the run is open; record it when it has ended")
        recording = await run.start_undo(done=effect, comment=text_in(said, "comment"), by=by)
        with suppress(TimeoutError):
            async with asyncio.timeout(_UNDO_S):
                await recording.result()
                return f"Effect {effect} is recorded as undone by hand.", {"workflow_id": recording.id}
        words = "It is being recorded; where several people must agree, the others are asked now."
        return words, {"workflow_id": recording.id, "state": "under way"}


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the routes by which people change runs."""
    acting = Acting(page)
    deeds = (
        acting.pause,
        acting.resume,
        acting.message,
        acting.top_up,
        acting.cancel,
        acting.undo,
        acting.undone_by_hand,
    )
    return [
        page.post(f"/runs/{{workflow_id:id}}/{deed.__name__}", _endpoint(page, deed.__name__, deed)) for deed in deeds
    ]


def _endpoint(page: PageRoutes, name: str, deed: Deed) -> Callable[[Request, Visitor, Submission], Awaitable[Response]]:
    async def act(request: Request, visitor: Visitor, sent: Submission) -> Response:
        found = await find(
            page.sources, visitor.by, request.path_params["workflow_id"], request.query_params.get("run")
        )
        if found.is_older:
            raise DecisionRefused("run: a newer run has this workflow ID, and this would be done to that one")
        said = _said(name, sent, visitor)
        if name in _CONFIRMED:
            confirmed = text_in(said, "confirm")
            said.pop("confirm", None)
            seen = await _preview(page, found, name, said)
            if not seen.is_what_was_seen(confirmed):
                return _ask(request, visitor, page, _Question(found, name, said, seen, again=bool(confirmed)))
            # Nothing that the run does from now on is undone unseen.
            said["last_seen"] = seen.newest
        run = page.backstay.run(found.workflow_id)
        try:
            words, answer = await deed(found, run, said, visitor.by)
        except QuorumPending as error:
            words, answer = str(error), {"state": "recorded"}
        return page.done(request, visitor, run_path(found.workflow_id), words, answer)

    return act


class _Question(NamedTuple):
    """Hold what people are asked before something is done that takes effects back."""

    found: KnownRun
    deed: str
    said: dict[str, Any]
    preview: UndoPreview
    again: bool
    """Whether it has changed since they saw it."""


async def _preview(page: PageRoutes, found: KnownRun, name: str, said: dict[str, Any]) -> UndoPreview:
    """Return what would be undone; raises Pruned when nothing of it is known any more.

    For an end it also tells whether all of that is kept: the run cannot know who cancels it.
    """
    to_step = said.get("to_step")
    if to_step is not None and (type(to_step) is not int or not 0 <= to_step <= MOST):
        raise DecisionInvalid("to_step: the number of a step, after which everything is undone")
    seen = await preview(page.sources, found, to_step, deed=name)
    return seen if name == "undo" else seen._replace(undo=seen.undo | {"kept": authority_over(found).restricts})


def _ask(request: Request, visitor: Visitor, page: PageRoutes, asked: _Question) -> Response:
    """Return the question whether what is shown is to be done."""
    if is_for_programs(request.scope):
        message = "confirm: look at the preview, then send this with the same `confirm`"
        seen = {"preview": asked.preview.undo, "confirm": asked.preview.digest}
        told = {**error_body("DecisionInvalid", message), **seen}
        return page.json(visitor, told, 409 if asked.again else 422)
    return page.render(
        request,
        visitor,
        "runs/confirm.html",
        409 if asked.again else 200,
        found=asked.found,
        deed=asked.deed,
        said=asked.said,
        undo=undo_view(asked.preview.undo),
        digest=asked.preview.digest,
        again=asked.again,
    )


def _said(name: str, sent: Submission, visitor: Visitor) -> dict[str, Any]:
    """Return what was sent as an update takes it; raises DecisionInvalid naming the field."""
    if sent.json is not None:
        said = without_names(visitor, sent.json)
        if unknown := sorted(said.keys() - _FIELDS[name]):
            raise DecisionInvalid(f"{one_line(unknown[0], 80)}: unknown field; remove it")
        return said
    fields = {key: sent.get(key).strip() for key in sent.fields if key != "csrf"}
    said: dict[str, Any] = {key: value for key, value in fields.items() if value}
    if name == "undo" and "to_step" in said:
        said["to_step"] = _number("to_step", said["to_step"], int)
    if name == "undone_by_hand" and "effect" in said:
        said["effect"] = _number("effect", said["effect"], int)
    if name == "top_up":
        return {key: _number(key, value, _LIMITS[key]) if key in _LIMITS else value for key, value in said.items()}
    return said


def _number(name: str, text: str, kind: type[int] | type[float]) -> float:
    try:
        return kind(text)
    except ValueError:
        raise DecisionInvalid(f"{name}: {one_line(text, 40)!r} is not a number; write one such as 5") from None


def _event(said: dict[str, Any]) -> str:
    """Return the name of what is sent, so that it is done once; raises DecisionInvalid for a long one."""
    event_id = text_in(said, "event_id")
    if len(event_id) > _LONGEST_EVENT:
        raise DecisionInvalid(f"event_id: longer than {_LONGEST_EVENT} characters; use a shorter one")
    return event_id


def _voted(answer: dict[str, Any]) -> str:
    """Return what people are told while others must ask for the same."""
    if answer.get("state") != "recorded":
        return ""
    missing = int(answer.get("quorum", 1)) - len(answer.get("by", ()))
    return f"Your word is recorded; {missing} more must ask for the same."


def _seen(task: asyncio.Task[Any]) -> None:
    """Look at how a task ended, so that nobody is told that nobody did; the run's events say what became of it."""
    if not task.cancelled():
        task.exception()
