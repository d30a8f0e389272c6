"""Read what a run has stored, a page at a time."""

from activities.model.told import FIRST_EVENTS, Told
from activities.payloads import apart
from activities.resources import Activities
from activities.retrying import implements
from activities.tools.effects import FIRST_LATE
from backstay import calls
from backstay.errors import RunNotFound
from backstay.task.reading import Page, at_path, page_of, page_of_events

MOST_EVENTS = 1000


class Pages(Activities):
    """Implement `read_page`."""

    @implements(calls.read_page)
    async def read_page(self, ask: calls.ReadPage) -> Page:
        """Return a page of what a run has stored; shown form only, and nothing of another run."""
        reading, run = ask.reading, ask.run
        if ask.workflow_id is None:
            await self.begin(ask)
        else:
            row = await self.store.runs.get(ask.workflow_id, ask.workflow_run_id)
            if row is None:
                raise RunNotFound(f"workflow_id: this store knows no run of {ask.workflow_id[:100]!r}")
            row.require_not_pruned()
            run = row.run
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
        told, at = Told(self.records, run, self.settings.system_role, first), after
        if row is not None and not after:
            await told.add_first(row)
        while not told.full and (events := await self.store.events.of_run(run, after=at, limit=FIRST_EVENTS)):
            for event in events:
                await told.add(event)
                at = event.n
                if told.full:
                    break
        return Page(messages=tuple(told.messages), total=last, next=at if at < last else None)
