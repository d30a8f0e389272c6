"""Read what a run has stored, a page at a time."""

from collections.abc import Iterable
from typing import Any

from activities.model.request import messages_of
from activities.payloads import apart
from activities.records import Records
from activities.resources import Activities
from activities.retrying import implements
from activities.tools.effects import FIRST_LATE
from backstay import calls
from backstay.canonical import canonical
from backstay.digests.told import read_told
from backstay.errors import ArgumentsInvalid, RunNotFound
from backstay.task.event import Event
from backstay.task.reading import PAGE_BYTES, Page, Reading, at_path, page_of, page_of_events
from backstay.tools.tool import DECIDED_BY
from store.runs.runs import RunRow

MOST_EVENTS = 1000
_USED = ("input_cached_tokens", "input_new_tokens", "output_tokens", "cost_usd")
_CALLED = frozenset({"action.called", "action.failed"})
FIRST_EVENTS = 50
"""A run that asks a model has asked it within this many events, or has not done anything yet."""


class MessagePage:
    """Collect the messages of one page, step by step."""

    def __init__(self, records: Records, run: str, system_role: str, first: Iterable[Event]) -> None:
        """Read the records of one run, whose first events these are."""
        self.messages: list[dict[str, Any]] = []
        self._planned = not any(event.name == "model.asked" for event in first)
        self._records = records
        self._run = run
        self._system_role = system_role
        self._size = 0

    @property
    def full(self) -> bool:
        """Return whether there is enough for a page."""
        return self._size > PAGE_BYTES // 2

    async def add_first(self, row: RunRow) -> None:
        """Add the prompt and the task, or what a plan is about."""
        context = row.opened.get("context")
        if self._planned or not context:
            self._add([{"role": "user", "content": row.text}], 0)
        else:
            piece = await self._piece(context)
            messages = messages_of([*piece.get("system", []), *piece["items"]], self._system_role)
            # Earlier words are told by the run that it follows.
            follows = {} if row.follows is None else {"follows": row.follows.rpartition("/")[0]}
            self._add([message | follows for message in messages], 0)

    async def add(self, event: Event) -> None:
        """Add what the model was told before this event, and what it said; of a plan, the call of a step."""
        if self._planned and event.name in _CALLED:
            self._add(_of_plan(event), event.step_index)
        context = event.data.get("context") if event.name == "model.asked" else None
        if context is None:
            return
        piece = await self._piece(str(context))
        messages = [_whole(message) for message in messages_of(piece.get("added", piece["items"]), self._system_role)]
        said = next(message for message in reversed(messages) if message["role"] == "assistant")
        said["model"], said["at"] = event.data.get("model"), event.at
        said["usage"] = {name: event.data.get(name, 0) for name in _USED}
        self._add(messages, event.step_index)

    async def _piece(self, context: str) -> dict[str, Any]:
        piece = await self._records.blobs.of(self._run).get_json(context)
        if not isinstance(piece, dict) or "items" not in piece:
            raise ArgumentsInvalid("messages: the stored value is not a conversation")
        return piece

    def _add(self, messages: Iterable[dict[str, Any]], step: int) -> None:
        for message in messages:
            self.messages.append({**message, "step": step})
            self._size += len(canonical(message))


def _of_plan(event: Event) -> list[dict[str, Any]]:
    """Return the call of a step as its event tells it, as if a model had made it."""
    name = str(event.data.get("tool")).replace(".", "__")
    call_id, ref = f"event-{event.n}", event.data.get("summary_ref")
    function = {"name": name, "arguments": canonical(event.data.get("arguments", {}))}
    said = {"role": "assistant", "content": None, "at": event.at}
    answer = {"role": "tool", "tool_call_id": call_id}
    failed = event.name == "action.failed" or ref is None
    answer |= {"content": event.text} if failed else {"content_ref": str(ref)}
    return [said | {"tool_calls": [{"id": call_id, "type": "function", "function": function}]}, answer]


def _whole(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message that holds the answer itself, or names it, where the model was shown a digest."""
    if message["role"] != "tool":
        return message
    told = read_told(message["content"])
    if not isinstance(told, dict) or told.get("error"):
        return message
    if DECIDED_BY in told:
        message = message | {DECIDED_BY: told[DECIDED_BY]}
    if "data" in told and not told.get("truncated"):
        data = told["data"]
        return {**message, "content": data if isinstance(data, str) else canonical(data)}
    ref = told.get("storage_ref") or (told.get("ref") if "dropped" in told else None)
    if not isinstance(ref, str):
        return message
    return {name: value for name, value in message.items() if name != "content"} | {"content_ref": ref}


class Pages(Activities):
    """Implement `read_page`."""

    @implements(calls.read_page)
    async def read_page(self, ask: calls.ReadPage) -> Page:
        """Return a page of what a run has stored; shown form only, and nothing of another run."""
        if ask.workflow_id is None:
            await self.begin(ask)
            return await self._page(ask.run, ask.reading)
        row = await self.store.runs.get(ask.workflow_id, ask.workflow_run_id)
        if row is None:
            raise RunNotFound(f"workflow_id: this store knows no run of {ask.workflow_id[:100]!r}")
        row.require_not_pruned()
        page = await self._page(row.run, ask.reading)
        return page.model_copy(update={"run_id": row.run.rpartition("/")[2]})

    async def _page(self, run: str, reading: Reading) -> Page:
        if reading.messages is not None:
            return await self._messages(run, reading.messages)
        if reading.ref is not None:
            value = at_path(await self.store.blobs.of(run).named_by_a_person(reading.ref), reading.path)
            return await apart(value, lambda: page_of(value, reading))
        events = await self.store.events.of_run(run, after=reading.after or 0, limit=MOST_EVENTS)
        return page_of_events(events, await self.store.events.last(run, below=FIRST_LATE), reading)

    async def _messages(self, run: str, after: int) -> Page:
        """Return the messages of the steps after an event, as far as they fit a page."""
        workflow_id, _, workflow_run_id = run.rpartition("/")
        row = await self.store.runs.get(workflow_id, workflow_run_id)
        first = await self.store.events.of_run(run, limit=FIRST_EVENTS)
        last = await self.store.events.last(run, below=FIRST_LATE)
        told, at = MessagePage(self.records, run, self.settings.system_role, first), after
        if row is not None and not after:
            await told.add_first(row)
        while not told.full and (events := await self.store.events.of_run(run, after=at, limit=FIRST_EVENTS)):
            for event in events:
                await told.add(event)
                at = event.n
                if told.full:
                    break
        return Page(messages=tuple(told.messages), total=last, next=at if at < last else None)
