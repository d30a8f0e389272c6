"""Read what a run has stored: while it is open by its update, afterwards by a workflow of its own."""

import asyncio
import json

import pytest
import pytest_asyncio
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateStage

from backstay.approvals.admission import DecisionInvalid
from backstay.canonical import canonical
from backstay.client import Backstay
from backstay.errors import ArgumentsInvalid, RunNotFound, StoreUnavailable
from backstay.testing import Reply
from examples.mailbox.seed import seed
from store.blobs.shown import ShownBlobs
from tests.cli.commands import command, environment_of
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import Scripts, engine, pending
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\n"
READ = Reply(calls=[("mail__list_invoices", {"limit": 100})])
MAIL = Reply(calls=[("mail__send_email", {"to": "a@example.com", "subject": "s", "body": "b"})])


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    scripts, folder = Scripts(), tmp_path_factory.mktemp("reading")
    await seed(folder / "mailbox.db", customers=20, invoices=100)
    async with engine(temporal, folder, scripts, policy=POLICY) as running:
        yield running, scripts, Backstay(temporal, task_queue=running.settings.task_queue)


async def waiting(opened):
    """Return a run that has read a large answer and waits for a person, and the ref of the answer."""
    _, scripts, backstay = opened
    run = await backstay.start(scripts.task(READ, MAIL))
    await pending(backstay.client.get_workflow_handle(run.id))
    (ref,) = [event.data["summary_ref"] for event in (await run.timeline()).events if event.name == "action.called"]
    return run, ref


async def read_all(run, ref):
    whole = await run.read(ref)
    assert (len(whole["invoices"]), whole["total"]) == (100, 100)
    assert await run.read(ref, "invoices.3") == whole["invoices"][3]
    events = [event async for event in run.stored_events()]
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert [event.n async for event in run.stored_events(after=2)] == [event.n for event in events][2:]
    return events


@promise("clients:reading")
async def test_a_run_is_read_while_it_is_open_and_after_its_end(opened):
    run, ref = await waiting(opened)
    early = await read_all(run, ref)
    handle = opened[2].client.get_workflow_handle(run.id)
    part = {"ref": ref, "path": "invoices", "offset": 98, "limit": 1}
    assert (await handle.execute_update("read", part))["next"] == 99

    await run.reject("r1", by="ana", stop=True)
    result = await run.result()
    late = await read_all(run, ref)
    assert late[: len(early)] == early
    assert late == list(result.events)


@promise("clients:reading-refused")
async def test_nothing_of_another_run_is_read_and_bad_questions_are_refused_by_field(opened):
    first, ref = await waiting(opened)
    _, scripts, backstay = opened
    other = await backstay.start(scripts.task(MAIL))
    await pending(backstay.client.get_workflow_handle(other.id))

    with pytest.raises(ArgumentsInvalid, match="no stored result"):
        await other.read(ref)
    with pytest.raises(ArgumentsInvalid, match="path: 'nowhere' does not exist"):
        await first.read(ref, "nowhere")
    for bad in (None, {}, [], {"ref": ref, "page": 1}, {"after": "1"}):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await backstay.client.get_workflow_handle(other.id).execute_update("read", bad)
        assert refused.value.cause.type == DecisionInvalid.__name__

    await other.cancel()
    await first.cancel()
    assert (await other.result()).outcome == "cancelled"
    with pytest.raises(ArgumentsInvalid, match="no stored result"):
        await other.read(ref)
    with pytest.raises(RunNotFound):
        await backstay.run("nobody").read(ref)


@promise("clients:reading-at-once")
async def test_reads_that_come_at_once_are_bounded_and_an_update_without_input_is_refused_in_words(opened):
    run, ref = await waiting(opened)
    handle = opened[2].client.get_workflow_handle(run.id)
    done = await asyncio.gather(
        *(handle.execute_update("read", {"ref": ref, "path": "total"}) for _ in range(20)), return_exceptions=True
    )
    assert {answer["value"] for answer in done if isinstance(answer, dict)} == {100}
    refused = [answer.cause for answer in done if isinstance(answer, WorkflowUpdateFailedError)]
    assert len(refused) + sum(isinstance(answer, dict) for answer in done) == 20
    assert {cause.type for cause in refused} <= {"DecisionRefused"}

    assert (await handle.execute_update("undo"))["undone"] == []
    for update in ("resume", "decide"):
        with pytest.raises(WorkflowUpdateFailedError) as said:
            await handle.execute_update(update)
        assert said.value.cause.type in {"DecisionRefused", "DecisionInvalid"}
    await run.cancel()


@promise("clients:reading")
@pytest.mark.thorough
async def test_whoever_follows_a_long_run_late_gets_every_event_from_the_first_one(opened):
    _, scripts, backstay = opened
    reads = Reply(calls=[("mail__list_customers", {"limit": 1, "offset": offset}) for offset in range(20)])
    run = await backstay.start(scripts.task(*[reads] * 6, budget={"max_tool_calls": 120}))
    result = await run.result()

    followed = [event.n async for event in run.events()]
    assert result.events[0].n > 1
    assert followed == list(range(1, result.events[-1].n + 1))


@promise("clients:reading-late")
async def test_whoever_follows_an_open_run_late_gets_every_event_also_while_others_read_and_the_store_is_away(
    opened, monkeypatch
):
    _, scripts, backstay = opened
    calls = Reply(calls=[("mail__list_customers", {"limit": 1, "offset": offset}) for offset in range(20)])
    run = await backstay.start(scripts.task(*[calls] * 6, MAIL, budget={"max_tool_calls": 130}))
    handle = backstay.client.get_workflow_handle(run.id)
    await pending(handle)
    (ref, *_) = [event.data["summary_ref"] for event in (await run.timeline()).events if event.name == "action.called"]
    read, beside, others, left = ShownBlobs.named_by_a_person, run._read_beside, asyncio.Event(), ["the store is away"]

    async def waits(self, name):
        await others.wait()
        return await read(self, name)

    async def fails_once(reading):
        if left:
            raise StoreUnavailable(left.pop())
        return await beside(reading)

    monkeypatch.setattr(ShownBlobs, "named_by_a_person", waits)
    monkeypatch.setattr(run, "_read_beside", fails_once)
    accepted = WorkflowUpdateStage.ACCEPTED
    reading = [await handle.start_update("read", {"ref": ref}, wait_for_stage=accepted) for _ in range(4)]
    followed = []
    async with asyncio.timeout(60):
        async for event in run.events():
            followed.append(event.n)
            if event.name == "approval.asked":
                break
    others.set()
    assert len([await each.result() for each in reading]) == 4
    await run.cancel()

    assert followed == list(range(1, len(followed) + 1))
    assert (len(followed) > 100, left) == (True, [])


LARGE = {"rows": [{"n": n, "text": "grün" * 50} for n in range(1000)]}


@promise("clients:reading-objects")
async def test_an_object_larger_than_a_page_is_read_as_an_object_and_a_text_as_a_text(temporal, tmp_path):
    text, scripts = canonical(LARGE), Scripts()
    server = ScriptedServer(tmp_path / "office.script", [reads("rows")], {"rows": {"data": {**LARGE, "text": text}}})
    async with engine(temporal, tmp_path, scripts, toolbox=toolbox_of_servers(tmp_path, office=server)) as running:
        run = await Backstay(temporal, task_queue=running.settings.task_queue).start(
            scripts.task(Reply(calls=[("office__rows", {})]))
        )
        result = await run.result()
        (ref,) = [event.data["summary_ref"] for event in result.events if event.name == "action.called"]
        assert await run.read(ref) == {**LARGE, "text": text}
        assert await run.read(ref, "text") == text
        shown = await command(
            "result", run.id, "--step", "1", "--output", "json", environment=environment_of(running), folder=tmp_path
        )
        assert json.loads(shown.out)["calls"][0]["data"] == {**LARGE, "text": text}
