"""Choose what later runs of the same user may recall of a run: whose words they were is kept with each part."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog

from activities.model.transcript import PROGRAM, RECALLED, Transcripts
from activities.payloads import apart
from activities.resources import Activities, Resources
from backstay import calls
from backstay.canonical import canonical
from backstay.errors import BackstayError, StoreUnavailable
from backstay.memory.item import UNKNOWN_SOURCE, MemoryItem, least_trusted, owner_of, without_ref
from backstay.memory.words import MOST_INDEXED, MOST_READ, words_of
from backstay.task.event import Event
from store.memory.items import Remembered
from store.runs.recollection import about_text, answer_text, call_text, output_text
from store.runs.runs import RunRow

MOST_CALLS = 200
"""The last calls of a run that are remembered."""
_LARGE = 1 << 20
"""Of larger answers the digest is indexed."""
_LETS_GO = frozenset({"approve", "modify"})
_log = structlog.get_logger("backstay.runs")


class Remembering(Activities):
    """Write the memory of users as their runs end."""

    def __init__(self, resources: Resources, transcripts: Transcripts) -> None:
        """Share the worker's transcripts."""
        super().__init__(resources)
        self.transcripts = transcripts

    def owner(self, row: RunRow | None) -> str:
        """Return whose memory a run may use, by what was proven when it began and by the settings of today."""
        if row is None or row.pruned_at is not None:
            return ""
        named, started_by = _in(row, "memory_of"), _in(row, "started_by")
        return named if named == owner_of(row.user_id, started_by, self.settings.may_act_for) else ""

    async def row(self, run: str) -> RunRow | None:
        """Return the row of a run."""
        workflow_id, _, workflow_run_id = run.rpartition("/")
        return await self.store.runs.get(workflow_id, workflow_run_id)

    async def of(self, ask: calls.CloseRun, events: Sequence[Event], result: Mapping[str, Any]) -> list[Remembered]:
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
    ) -> list[Remembered]:
        told = await self._sources(ask)
        made = [event for event in events if event.name in {"action.called", "action.failed"}][-MOST_CALLS:]
        approved = _approved(events)
        outputs = {event.n: told.get(ref, UNKNOWN_SOURCE) for event in made if (ref := _ref(event))}
        by_model = {"source": least_trusted([*told.values(), *outputs.values()]), "written_by": _in(row, "model")}
        ended = row.model_copy(update={"result": dict(result)})

        def item(n: int, kind: str, at: float, **more: Any) -> MemoryItem:
            common = {"run": ask.run, "owner": owner, "session_id": row.session_id}
            return MemoryItem.model_validate({**common, "n": n, "kind": kind, "at": at, **more})

        about = item(0, "run_metadata", row.opened_at, source="task", written_by=_in(row, "started_by"))
        found = [Remembered(about, words_of(about_text(ended)))]
        for event in made:
            tool, at = str(event.data.get("tool") or ""), _seconds(event, row)
            named = {"tool": tool, "approved_by": approved.get(event.n, "")}
            call = item(event.n, "tool_call", at, **named, **by_model)
            asked = words_of(call_text(event.data))
            found.append(Remembered(call, asked))
            if (ref := _ref(event)) and (words := await self._words(ask.run, ref)):
                by_tool = {"ref": ref, "source": without_ref(outputs[event.n]), "written_by": tool}
                # What was asked for tells what an answer is about.
                words = list(dict.fromkeys([*asked, *words]))[:MOST_INDEXED]
                found.append(Remembered(item(event.n, "tool_output", at, **named, **by_tool), words))
        last = max((event.n for event in events), default=0) + 1
        latest = max(remembered.item.at for remembered in found)
        answer = item(last, "final_answer", latest, **by_model)
        return [*found, Remembered(answer, words_of(answer_text(ended.result or {})))]

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


def _ref(event: Event) -> str:
    return str(event.data.get("summary_ref") or "")


def _seconds(event: Event, row: RunRow) -> float:
    try:
        return datetime.fromisoformat(event.at).timestamp()
    except ValueError:
        return row.opened_at


def _approved(events: Sequence[Event]) -> dict[int, str]:
    """Return, for calls that change something, the person who let them go, where one was asked in their step."""
    last: dict[int, str] = {}
    found: dict[int, str] = {}
    for event in events:
        said = event.data
        if event.name == "approval.decided" and said.get("state") == "decided" and said.get("verdict") in _LETS_GO:
            last[event.step_index] = f"{said.get('by')}{'' if said.get('verified') else ' (not verified)'}"
        elif said.get("effect") is not None and event.step_index in last:
            found[event.n] = last[event.step_index]
    return found
