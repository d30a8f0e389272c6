"""Choose what later runs of the same user may recall of a run: whose words they were is kept with each part."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog

from activities.model.transcript import PROGRAM, RECALLED, Transcripts
from activities.payloads import apart
from activities.resources import Activities, Resources
from backstay import calls
from backstay.approvals.approval import RecordedDecision
from backstay.canonical import canonical
from backstay.errors import BackstayError, StoreUnavailable
from backstay.memory.item import UNKNOWN_SOURCE, MemoryItem, least_trusted, without_ref
from backstay.memory.words import MOST_INDEXED, MOST_READ, words_of
from backstay.provenance.source import TASK_OF_OTHERS, Source
from backstay.task.event import Event
from store.memory.items import NewItem
from store.runs.recollection import about_text, answer_text, call_text, output_text
from store.runs.runs import RunRow

MOST_CALLS = 200
"""The last calls of a run that are remembered."""
_LARGE = 1 << 20
"""Of larger answers the digest is indexed."""
_LETS_GO = frozenset({"approve", "modify"})
_WHOLE = frozenset({"plan", "program"})
"""Kinds of requests that are about all that a plan or a program does."""
_log = structlog.get_logger("backstay.runs")


class MemoryActivities(Activities):
    """Write the memory of users as their runs end."""

    def __init__(self, resources: Resources, transcripts: Transcripts) -> None:
        """Share the worker's transcripts."""
        super().__init__(resources)
        self.transcripts = transcripts

    def owner(self, row: RunRow | None) -> str:
        """Return whose memory a run may use, by what was proven when it began and by the settings of today."""
        if row is None or row.pruned_at is not None:
            return ""
        named = _in(row, "memory_of")
        return named if named == self.resources.owners.of_row(row) else ""

    async def row(self, run: str) -> RunRow | None:
        """Return the row of a run."""
        workflow_id, _, workflow_run_id = run.rpartition("/")
        return await self.store.runs.get(workflow_id, workflow_run_id)

    async def closed_before(self, run: str) -> calls.ClosingFigures | None:
        """Return how a run ended of which something was forgotten since; a retry would write it down again."""
        row = await self.row(run)
        if row is None or row.result is None or not await self.store.forgetting.has_forgotten(run):
            return None
        told = {
            name: row.result.get(name)
            for name in ("ledger_head", "effects", "effects_ref", "events_total", "events_ref")
        }
        return calls.ClosingFigures.model_validate(told)

    async def of(self, ask: calls.CloseRun, events: Sequence[Event], result: Mapping[str, Any]) -> list[NewItem]:
        """Return what is to be remembered of a run that ends; nothing where that cannot be read.

        Raises StoreUnavailable.
        """
        if not ask.remember:
            return []
        try:
            row = await self.row(ask.run)
            if row is None or not (owner := self.owner(row)):
                return []
            return await self._items(ask, row, owner, events, result)
        except StoreUnavailable:
            raise
        except BackstayError as error:
            _log.warning("run.not_remembered", run=ask.run, reason=str(error))
            return []

    async def _items(
        self, ask: calls.CloseRun, row: RunRow, owner: str, events: Sequence[Event], result: Mapping[str, Any]
    ) -> list[NewItem]:
        told = await self._sources(ask)
        every = [event for event in events if event.name in {"action.called", "action.failed"}]
        made, approved = every[-MOST_CALLS:], await self._approved(ask.run, events)
        read = [told.get(_ref(event), _untold(event)) for event in every]
        by_model = {"source": least_trusted([*told.values(), *read]), "written_by": _in(row, "model")}
        ended = row.model_copy(update={"result": dict(result)})

        def item(n: int, kind: str, at: float, **more: Any) -> MemoryItem:
            common = {"run": ask.run, "owner": owner, "session_id": row.session_id}
            return MemoryItem.model_validate({**common, "n": n, "kind": kind, "at": at, **more})

        about = item(0, "run_metadata", row.opened_at, **_of_task(row, by_model))
        found = [NewItem(about, words_of(about_text(ended)))]
        for event in made:
            tool, at = str(event.data.get("tool") or ""), _seconds(event, row)
            named = {"tool": tool, "approved_by": approved.get(event.n, "")}
            call = item(event.n, "tool_call", at, **named, **by_model)
            asked = words_of(call_text(event.data))
            found.append(NewItem(call, asked))
            if (ref := _ref(event)) and (words := await self._words(ask.run, ref)):
                by_tool = {"ref": ref, "source": without_ref(told.get(ref, UNKNOWN_SOURCE)), "written_by": tool}
                # The request tells what an answer is about.
                words = list(dict.fromkeys([*asked, *words]))[:MOST_INDEXED]
                found.append(NewItem(item(event.n, "tool_output", at, **named, **by_tool), words))
        last = max((event.n for event in events), default=0) + 1
        latest = max(remembered.item.at for remembered in found)
        answer = item(
            last, "final_answer", latest, **by_model | ({"source": UNKNOWN_SOURCE} if _quotes(result) else {})
        )
        return [*found, NewItem(answer, words_of(answer_text(ended.result or {})))]

    async def _approved(self, run: str, events: Sequence[Event]) -> dict[int, str]:
        """Return, for calls that change something, the person who let them go, where one was asked about them."""
        decisions = await self.store.decisions.of_run(run)
        if not decisions:
            return {}
        workflow_id, _, _ = run.rpartition("/")
        asked = await self.store.requests.of_workflow(workflow_id, run=run)
        by_call = _said_of_calls(decisions, {row.request_id: row.request.get("calls", ()) for row in asked})
        by_step = _of_whole(events)
        effects = {row.n: row for row in await self.store.effects.of_run(run) if not row.undo}
        found: dict[int, str] = {}
        for event in events:
            if (effect := effects.get(event.data.get("effect", 0))) is not None:
                named = by_call.get((effect.tool, effect.args_digest)) or by_step.get(event.step_index)
                found |= {} if named is None else {event.n: named}
        return found

    async def _sources(self, ask: calls.CloseRun) -> dict[str, str]:
        """Return whose words the model was told, by the stored result that holds them; texts have names of their own.

        What it was not told any more is left out: it has read nothing of it.
        """
        if not ask.context:
            return {}
        transcript = await self.transcripts.load(ask.run, ask.context)
        found: dict[str, str] = {}
        for n, said in enumerate(await self.transcripts.told_in(ask.run, transcript)):
            name = said.ref or f"text {n}"
            if said.ref is not None and said.code in {PROGRAM, RECALLED}:
                record = await self.records.record(ask.run, said.ref)
                nothing = [] if said.code == RECALLED else [UNKNOWN_SOURCE]
                found[name] = least_trusted(record.get("read") or nothing)
            else:
                found[name] = UNKNOWN_SOURCE if said.code == PROGRAM else said.code
        return found

    async def _words(self, run: str, ref: str) -> list[str]:
        """Return the words of a stored answer; none where it is none."""
        record = await self.records.record(run, ref)
        digest = record["digest"]
        size = 0 if "data" in digest else digest["original_size"]["bytes"]
        payload = canonical(digest) if size > _LARGE else await self.records.shown(run, ref)
        return await apart(payload, lambda: words_of(output_text(payload)[:MOST_READ]))


def _in(row: RunRow, name: str) -> str:
    return str(row.opened.get(name) or "")


def _of_task(row: RunRow, by_model: Mapping[str, str]) -> Mapping[str, str]:
    """Return whose words say what a run is about, and who wrote them; of a sub-run it was a model, as its own words."""
    opened = calls.OpenedRun.model_validate(row.opened) if row.opened else None
    if opened is not None and opened.above:
        return by_model
    by_others = opened is not None and opened.text_by_others
    return {"source": TASK_OF_OTHERS if by_others else "task", "written_by": _in(row, "started_by")}


def _ref(event: Event) -> str:
    return str(event.data.get("summary_ref") or "")


def _seconds(event: Event, row: RunRow) -> float:
    try:
        return datetime.fromisoformat(event.at).timestamp()
    except ValueError:
        return row.opened_at


def _untold(event: Event) -> str:
    """Return whose words came of a call that the model was not told of as an answer: an error may quote anybody."""
    tool = str(event.data.get("tool") or "")
    return UNKNOWN_SOURCE if _ref(event) or not tool else Source(kind="tool", tool=tool, content="others").code


def _quotes(result: Mapping[str, Any]) -> bool:
    """Return whether a result may repeat, beside what the model said, why a call or an undo failed."""
    return bool(result.get("error") or result.get("undone"))


def _said_of_calls(decisions: Iterable[RecordedDecision], asked: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return who let calls go about which people were asked, by tool and digest of the arguments."""
    found: dict[tuple[str, str], str] = {}
    for decision in decisions:
        if decision.state != "decided" or decision.asked_again:
            continue
        changed = {each.index: each.args_digest for each in decision.changed}
        for call in asked.get(decision.request_id, ()):
            if decision.calls.get(call["index"], decision.verdict) in _LETS_GO:
                digest = str(changed.get(call["index"]) or call["args_digest"])
                found[call["tool"], digest] = _named(decision.by, decision.verified)
    return found


def _named(by: Any, verified: Any) -> str:
    return f"{by}{'' if verified else ' (not verified)'}"


def _of_whole(events: Sequence[Event]) -> dict[int, str]:
    """Return by step who let a plan or a program go as a whole."""
    found: dict[int, str] = {}
    for event in events:
        said = event.data
        is_whole = event.name == "approval.decided" and said.get("kind") in _WHOLE and said.get("state") == "decided"
        if is_whole and said.get("verdict") in _LETS_GO:
            found[event.step_index] = _named(said.get("by"), said.get("verified"))
    return found
