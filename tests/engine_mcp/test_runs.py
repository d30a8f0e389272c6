"""Programs that speak MCP start runs, follow them, read what they found, and decide nothing."""

import asyncio
import json

import pytest
import pytest_asyncio

import opening
from backstay.bounds import size_of
from backstay.client import Backstay
from backstay.errors import Unreachable
from backstay.task.event import Event
from backstay.task.reading import PAGE_BYTES
from backstay.testing import Reply
from gateways.engine_mcp.runs import EngineRuns
from gateways.engine_mcp.tasks import ServedTask, settled
from gateways.engine_mcp.views import result_view, whole_view
from people.runs import listing
from people.runs.looking import FIRST_LATE
from store.runs.runs import Runs
from tests.engine import Scripts, engine, forgotten, pending
from tests.engine_mcp.served import Refused, Wire, sdk_client, served_engine
from tests.requirements import promise
from tests.web.pages import KEY, PROXY, SECRET

ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"
SEND = ("mail__send_email", {"to": "kim@x.example", "subject": "Hello", "body": "Dear Kim"})
POLICY = "provenance: strict\nallow: [{tool: mail.list_sent}]\nask: [{tool: mail.send_email}]\n"
DONE = Reply(calls=[("finish", {"summary": "found it", "outputs": {"answer": 42}, "success": True})])
FAILED = Reply(calls=[("finish", {"summary": "no", "outputs": {}, "success": False})])
ASK = Reply(calls=[("ask_person", {"question": "Which Kim?"})])
SENDS = Reply(calls=[SEND])
SCRIPTS = Scripts()
DEFINITION = """
id: tell_customer
title: Tell a customer
input: {type: object, required: [to], properties: {to: {type: string}}}
steps: [{tool: mail.send_email, params: {to: "${input.to}", subject: Hello, body: Dear all}}]
"""


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mcp")
    (folder / "definitions").mkdir()
    (folder / "definitions" / "tell.yaml").write_text(DEFINITION, encoding="utf-8")
    given = {"web_identity": "header", "web_proxy_secret": PROXY, "web_secret": SECRET, "approver_key": KEY}
    given |= {"web_starters": (ANA, BO), "definitions": folder / "definitions"}
    async with engine(temporal, folder, SCRIPTS, policy=POLICY, **given) as running, served_engine(running) as url:
        yield running, url


def script(*replies):
    """Return the text of a run whose model answers so."""
    return SCRIPTS.task(*replies)["text"]


def told(answer):
    assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]
    return answer["structuredContent"]


@promise("clients:mcp-tasks")
async def test_a_run_is_a_task_whose_result_is_that_of_the_run(opened):
    _, url = opened
    ana = Wire(url, ANA)
    task = await ana.started(script(DONE))
    assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", None)
    ended = await ana.until(task["taskId"], "completed")
    result = ended["result"]
    assert (result["isError"], told(result)["outputs"]) == (False, {"answer": 42})
    assert told(await ana.call("read_result", run=task["taskId"], path="outputs.answer"))["value"] == 42
    assert told(await ana.call("cancel_run", run=task["taskId"]))["cancelled"] is False


@promise("clients:mcp-tasks")
async def test_a_run_that_fails_is_a_completed_task_with_an_error(opened):
    _, url = opened
    ana = Wire(url, ANA)
    task = await ana.started(script(FAILED))
    ended = await ana.until(task["taskId"], "completed")
    assert (ended["result"]["isError"], told(ended["result"])["outcome"]) == (True, "failed")


@promise("clients:mcp-tasks")
async def test_a_run_that_cannot_begin_says_why_and_one_that_was_terminated_is_a_failed_task(opened):
    running, url = opened
    ana = Wire(url, ANA)
    task = await ana.started(script(DONE), output_schema={"type": "nothing"})
    ended = await ana.until(task["taskId"], "completed")
    assert (ended["result"]["isError"], told(ended["result"])["error"]["type"]) == (True, "TaskInvalid")
    async with served_engine(running, task_queue="nobody-works-here") as idle:
        lost = (await Wire(idle, ANA).started(script(DONE)))["taskId"]
        waiting = await ana.get(lost)
        assert (waiting["status"], waiting["statusMessage"]) == ("working", "the run has not begun yet")
        await running.client.get_workflow_handle(lost).terminate()
        failed = await ana.get(lost)
    assert (failed["status"], failed["error"]["code"], "result" in failed) == ("failed", -32603, False)
    assert "the run was terminated" in failed["error"]["message"]
    plain = await Wire(url, ANA, tasks=False).call("follow_run", run=lost)
    assert told(plain)["status"] == "failed"


@promise("clients:mcp-bounded")
async def test_what_a_run_has_stored_is_read_by_its_ref_a_page_at_a_time(opened):
    _, url = opened
    ana = Wire(url, ANA)
    task = (await ana.started(script(DONE)))["taskId"]
    ref = told((await ana.until(task, "completed"))["result"])["events_ref"]
    page = told(await ana.call("read_result", run=task, ref=ref))
    assert (page["total"], page["value"][0]["name"], page["next"]) == (len(page["value"]), "run.started", None)
    rest = told(await ana.call("read_result", run=task, ref=ref, offset=1))
    assert rest["value"] == page["value"][1:]
    for wrong, field in ({"ref": "0" * 40}, "ref"), ({"path": "outputs.nothing"}, "path"), ({"ref": "../x"}, "ref"):
        answer = await ana.call("read_result", run=task, **wrong)
        assert (answer["isError"], field in answer["content"][0]["text"]) == (True, True), answer


@promise("clients:mcp-bounded")
@pytest.mark.parametrize("field", ["raw_outputs", "output", "final_summary", "effects"])
def test_a_part_of_a_result_that_is_too_large_is_left_out_and_says_how_it_is_read(field):
    name = {"raw_outputs": "outputs", "final_summary": "summary"}.get(field, field)
    large = {"raw_outputs": {"x": "y" * 120_000}, "effects": [{"tool": "a.b", "undo": "u" * 30_000}] * 9}
    result = {"outcome": "completed", "success": True, field: large.get(field, "z" * 120_000)}
    view = result_view("run", result)
    assert size_of(view) <= PAGE_BYTES
    assert f"read it with path '{name}'" in view[name]["left_out"]
    assert size_of(whole_view(result)[name]) > PAGE_BYTES


@promise("clients:mcp-waits")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_without_the_extension_a_call_waits_with_progress_and_answers_the_result(opened, mode):
    _, url = opened
    heard = []

    async def hear(progress, _total, message):
        heard.append((progress, message))

    async with asyncio.timeout(60), sdk_client(url, ANA, mode=mode) as client:
        answer = await client.call_tool("start_run", {"text": script(DONE)}, progress_callback=hear)
    assert (answer.is_error, answer.structured_content["summary"]) == (False, "found it")
    assert heard[0][1] == answer.structured_content["run"]
    assert [progress for progress, _ in heard] == sorted({progress for progress, _ in heard})


@promise("clients:mcp-waits")
async def test_a_run_that_outlasts_the_call_is_a_handle_that_is_followed_to_the_end(opened):
    running, url = opened
    async with asyncio.timeout(60), sdk_client(url, ANA) as client:
        answer = (await client.call_tool("start_run", {"text": script(SENDS), "wait_s": 0})).structured_content
        handle = running.client.get_workflow_handle(answer["run"])
        (request,) = await pending(handle)
        seen = (await client.call_tool("follow_run", {"run": answer["run"], "wait_s": 1})).structured_content
        assert (seen["status"], seen["questions"]) == ("working", [])
        (waits,) = seen["waits_for"]
        assert waits["kind"] == "call"
        assert "mail.send_email" in waits["asks"]
        assert seen["message"].startswith("waits for a person: ")
        decision = {"request_id": request["id"], "verdict": "reject", "by": "somebody"}
        await handle.execute_update("decide", decision)
        ended = (await client.call_tool("follow_run", {"run": answer["run"], "wait_s": 60})).structured_content
        assert ended["result"]["outcome"] == "completed"
        again = await client.call_tool("follow_run", {"run": answer["run"], "after": ended["after"]})
        assert again.structured_content["events"] == []


@pytest_asyncio.fixture(scope="module")
async def other_door(opened):
    """Serve the engine once more: each server counts for itself how much a caller starts."""
    async with served_engine(opened[0]) as url:
        yield url


@promise("clients:mcp-events")
async def test_who_follows_a_run_is_told_each_of_its_events_once(other_door):
    ana = Wire(other_door, ANA)
    reads = Reply(calls=[("mail__list_sent", {"to": f"{n}@x.example"}) for n in range(14)])
    # While the model thinks about one more, the events of these reach no store, and the run tells its last ten itself.
    one_more = Reply(calls=[("mail__list_sent", {"to": "kim@x.example"})])
    task = (await ana.started(script(reads, one_more, ASK.model_copy(update={"delay_s": 3}), DONE)))["taskId"]
    numbers, seen = [], {"after": 0, "questions": []}
    async with asyncio.timeout(60):
        while not seen["questions"] or seen["events"]:
            seen = told(await ana.call("follow_run", run=task, after=seen["after"]))
            numbers += [event["n"] for event in seen["events"]]
            await asyncio.sleep(0.05)
    assert (numbers, seen["after"] > 16) == (list(range(1, seen["after"] + 1)), True)
    await ana.ask("tasks/cancel", {"taskId": task})
    await ana.until(task, "cancelled")


@promise("clients:mcp-events")
async def test_answers_that_come_late_are_told_and_leave_the_rest_of_the_run_to_be_followed(opened, other_door):
    running, ana = opened[0], Wire(other_door, ANA)
    task = (await ana.started(script(ASK, DONE)))["taskId"]
    await ana.until(task, "input_required")
    run = f"{task}/{(await running.client.get_workflow_handle(task).describe()).run_id}"
    heard, after = [], 0

    async def follow(**more):
        nonlocal after
        seen = told(await ana.call("follow_run", run=task, after=after, **more))
        heard.extend(seen["events"])
        after = seen["after"]
        return [event["text"] for event in seen["events"] if event.get("late")]

    async with opening.open_store(running.settings) as store:
        # In any order, and nothing of the run stands behind them.
        for effect, known in (2, ["late 2"]), (1, ["late 1", "late 2"]):
            late = Event(
                n=FIRST_LATE + 2 * effect, name="effect.late", at="2026-01-01T00:00:00Z", text=f"late {effect}"
            )
            await store.events.append(run, [late])
            assert (await follow(), await follow()) == (known, [])
    await ana.call("answer_question", run=task, question="r1", answer="the tall one")
    assert await follow(wait_s=60) == []
    numbers = [event["n"] for event in heard if not event.get("late")]
    assert (numbers, heard[-1]["name"]) == (list(range(1, len(numbers) + 1)), "run.ended")
    assert await follow() == []


@promise("clients:mcp-silent")
@pytest.mark.parametrize("silent", ["look", "handle"])
async def test_a_start_whose_end_nobody_can_ask_about_names_the_run_all_the_same(other_door, monkeypatch, silent):
    plain = Wire(other_door, ANA, tasks=False)

    async def unreachable(*_):
        raise Unreachable("Temporal does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(EngineRuns, silent, unreachable)
        answer = await plain.started(script(ASK, DONE), wait_s=0)
    said = told(answer)
    assert (answer["isError"], said["status"], said["message"]) == (False, "working", "Temporal does not answer")
    assert said["next"] == "call follow_run with this run"
    assert told(await plain.call("follow_run", run=said["run"]))["run"] == said["run"]
    await plain.call("cancel_run", run=said["run"])
    await Wire(other_door, ANA).until(said["run"], "cancelled")


@promise("clients:mcp-silent")
async def test_a_start_whose_answer_is_lost_names_the_run_that_may_have_begun(other_door, monkeypatch):
    ana, start = Wire(other_door, ANA), Backstay.start

    async def lost(*args, **more):
        await start(*args, **more)
        raise Unreachable("Temporal does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(Backstay, "start", lost)
        answer = await ana.started(script(DONE))
    words = answer["content"][0]["text"]
    assert (answer["isError"], "the run may have begun all the same" in words) == (True, True)
    name = words.partition("call follow_run with ")[2].split()[0]
    assert told(await ana.call("follow_run", run=name, wait_s=60))["result"]["outputs"] == {"answer": 42}


@promise("clients:mcp-silent")
async def test_a_run_that_no_worker_has_begun_is_not_said_to_be_missing_while_temporal_does_not_answer(
    opened, monkeypatch
):
    running, _ = opened
    async with served_engine(running, task_queue="nobody-works-here") as idle:
        ana = Wire(idle, ANA)
        task = (await ana.started(script(DONE)))["taskId"]

        async def unreachable(*_):
            raise Unreachable("Temporal does not answer")

        with monkeypatch.context() as down:
            down.setattr(Backstay, "execution", unreachable)
            with pytest.raises(Refused) as refused:
                await ana.get(task)
            followed = await ana.call("follow_run", run=task)
            with pytest.raises(Refused) as stranger:
                await Wire(idle, BO).get(task)
        assert (await ana.get(task))["status"] == "working"
        await running.client.get_workflow_handle(task).terminate()
    assert (refused.value.code, refused.value.message) == (-32603, "Temporal does not answer")
    assert (followed["isError"], followed["content"][0]["text"]) == (True, "Temporal does not answer")
    assert (stranger.value.code, stranger.value.message) == (-32602, "Task not found")


@promise("clients:mcp-questions")
async def test_a_question_of_the_model_is_input_that_the_client_gives(opened):
    _, url = opened
    ana, heard = Wire(url, ANA), []

    def hear(conversation):
        heard.append(json.dumps(conversation.messages))
        return DONE

    task = await ana.started(script(ASK, hear))
    asking = await ana.until(task["taskId"], "input_required")
    ((key, request),) = asking["inputRequests"].items()
    assert (request["method"], request["params"]["message"]) == ("elicitation/create", "Which Kim?")
    for nothing in ({"other": {"action": "accept", "content": {"answer": "x"}}}, {key: {"action": "cancel"}}):
        await ana.ask("tasks/update", {"taskId": task["taskId"], "inputResponses": nothing})
        assert (await ana.get(task["taskId"]))["status"] == "input_required"
    wrong = {key: {"action": "accept", "content": {}}}
    with pytest.raises(Refused, match="answer: must be a string"):
        await ana.ask("tasks/update", {"taskId": task["taskId"], "inputResponses": wrong})
    said = {key: {"action": "accept", "content": {"answer": "kim@x.example"}}}
    acknowledged = await ana.ask("tasks/update", {"taskId": task["taskId"], "inputResponses": said})
    assert acknowledged.keys() == {"resultType", "_meta"}
    await ana.until(task["taskId"], "completed")
    assert any("kim@x.example" in said for said in heard)


@promise("clients:mcp-questions")
async def test_a_client_that_cannot_elicit_is_told_of_a_question_and_answers_it_by_a_tool(opened):
    _, url = opened
    plain = Wire(url, ANA, capabilities={})
    task = await plain.started(script(ASK, DONE))
    async with asyncio.timeout(60):
        while not (seen := told(await plain.call("follow_run", run=task["taskId"])))["questions"]:
            await asyncio.sleep(0.1)
    found = await plain.get(task["taskId"])
    assert (found["status"], "inputRequests" in found) == ("working", False)
    assert found["statusMessage"] == "the run asks: Which Kim?"
    (question,) = seen["questions"]
    await plain.call("answer_question", run=task["taskId"], question=question["question"], answer="the tall one")
    await plain.until(task["taskId"], "completed")


@promise("clients:mcp-decides-nothing")
async def test_what_asks_for_an_approval_is_never_input_and_no_answer_decides_it(opened):
    running, url = opened
    ana = Wire(url, ANA)
    task = await ana.started(script(SENDS))
    handle = running.client.get_workflow_handle(task["taskId"])
    (request,) = await pending(handle)
    found = await ana.get(task["taskId"])
    assert (found["status"], "inputRequests" in found) == ("working", False)
    for said in ({"action": "accept", "content": {"answer": "approve"}}, {"action": "accept", "content": {}}):
        await ana.ask("tasks/update", {"taskId": task["taskId"], "inputResponses": {request["id"]: said}})
    answer = await ana.call("answer_question", run=task["taskId"], question=request["id"], answer="approve")
    assert (answer["isError"], "is not a question" in answer["content"][0]["text"]) == (True, True)
    assert [each["id"] for each in await pending(handle)] == [request["id"]]
    names = {tool["name"] for tool in (await ana.ask("tools/list"))["tools"]}
    assert not {name for name in names for word in ("approve", "decide", "top", "undo", "reject") if word in name}
    await ana.ask("tasks/cancel", {"taskId": task["taskId"]})
    assert (await ana.until(task["taskId"], "cancelled"))["status"] == "cancelled"
    assert running.mailbox.sent() == []


@promise("clients:mcp-own-runs")
async def test_nobody_reaches_a_run_that_somebody_else_or_another_door_has_started(opened):
    running, url = opened
    ana, bo = Wire(url, ANA), Wire(url, BO)
    task = (await ana.started(script(ASK, DONE)))["taskId"]
    await ana.until(task, "input_required")
    elsewhere = (await running.start({"text": script(ASK, DONE), "user_id": BO}, "mcp-of-bo")).id
    for other in (task, elsewhere, task[:-1] + ("0" if task[-1] != "0" else "1"), "mcp-x", ""):
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(Refused) as refused:
                await bo.ask(method, {"taskId": other, "inputResponses": {"r1": {"action": "decline"}}})
            assert (refused.value.code, refused.value.message) == (-32602, "Task not found")
        for tool in ("follow_run", "read_result", "cancel_run"):
            answer = await bo.call(tool, run=other)
            assert answer["isError"]
    assert task not in json.dumps(await bo.call("list_runs"))
    assert told(await ana.call("list_runs"))["runs"][0]["run"] == task
    assert (await ana.get(task))["status"] == "input_required"
    await ana.ask("tasks/cancel", {"taskId": task})


@promise("clients:mcp-own-runs")
async def test_a_run_that_bears_the_id_of_a_caller_but_works_for_another_is_not_the_callers(opened):
    running, url = opened
    ana = Wire(url, ANA)
    task = (await ana.started(script(DONE)))["taskId"]
    await ana.until(task, "completed")
    # The store knows of the end a moment before Temporal does.
    await running.client.get_workflow_handle(task).result()
    # Whoever reaches Temporal can use the name again once the run has ended.
    await running.start({"text": script(ASK, DONE), "user_id": BO}, task)
    await pending(running.client.get_workflow_handle(task))
    with pytest.raises(Refused):
        await ana.get(task)


@promise("clients:mcp-listed-runs")
async def test_own_runs_are_listed_behind_any_number_of_others_and_before_a_worker_has_begun_them(
    opened, other_door, monkeypatch
):
    running, url = opened[0], other_door
    # As if hundreds had been looked at.
    monkeypatch.setattr(listing, "MOST_LOOKED_AT", 1)
    monkeypatch.setattr(listing, "_MOST_OPEN", 1)
    ana, begun = Wire(url, ANA), []
    for _ in range(2):
        begun.insert(0, (await ana.started(script(DONE)))["taskId"])
        await ana.until(begun[0], "completed")
    async with opening.open_store(running.settings) as store:
        for n in range(70):
            mine = {"workflow_id": f"by-hand-{n}", "user_id": ANA if n % 2 else BO, "text": "", "opened": {}}
            await store.runs.opened(run=f"by-hand-{n}/r", workflow_run_id="r", **mine)
    async with served_engine(running, task_queue="nobody-works-here") as idle:
        waits = (await Wire(idle, ANA).started(script(DONE)))["taskId"]
        newer = await running.client.start_workflow("RunTask", id="by-hand-open", task_queue="nobody-works-here")
        async with asyncio.timeout(60):
            # Temporal lists a run a moment after its start.
            while (runs := told(await ana.call("list_runs"))["runs"])[0]["run"] != waits:
                await asyncio.sleep(0.1)
            while not [run async for run in running.client.list_workflows("WorkflowId = 'by-hand-open'")]:
                await asyncio.sleep(0.1)
            runs = told(await ana.call("list_runs"))["runs"]
        asked = []
        get = Runs.get
        monkeypatch.setattr(Runs, "get", lambda runs, *name: asked.append(name[0]) or get(runs, *name))
        theirs = told(await Wire(url, BO).call("list_runs"))["runs"]
        for handle in (newer, running.client.get_workflow_handle(waits)):
            await handle.terminate()
    assert [run["run"] for run in runs[:3]] == [waits, *begun]
    assert (runs[0]["state"], len(runs) <= 20) == ("not begun", True)
    assert (waits in [run["run"] for run in theirs], waits in asked) == (False, False)


@promise("clients:mcp-once")
async def test_the_same_start_starts_one_run_and_another_one_under_its_name_is_refused(opened):
    _, url = opened
    ana, bo = Wire(url, ANA), Wire(url, BO)
    text = script(DONE)
    tasks = await asyncio.gather(*(ana.started(text, once="april") for _ in range(4)))
    assert len({task["taskId"] for task in tasks}) == 1
    await ana.until(tasks[0]["taskId"], "completed")
    assert (await ana.started(text, once="april"))["taskId"] == tasks[0]["taskId"]
    other = await ana.started(script(FAILED), once="april")
    assert (other["isError"], "once: you started another task" in other["content"][0]["text"]) == (True, True)
    assert (await bo.started(text, once="april"))["taskId"] != tasks[0]["taskId"]


@promise("clients:mcp-once")
@pytest.mark.thorough
async def test_a_run_that_temporal_has_forgotten_is_still_the_one_of_its_name(opened):
    running, url = opened
    ana, text = Wire(url, ANA), script(DONE)
    task = (await ana.started(text, once="long ago"))["taskId"]
    await ana.until(task, "completed")
    await forgotten(running, task)
    assert (await ana.started(text, once="long ago"))["taskId"] == task
    assert told((await ana.get(task))["result"])["outputs"] == {"answer": 42}


@promise("clients:mcp-words")
async def test_the_words_of_a_client_are_those_of_others_and_count_as_the_tasks_only_where_the_operator_says_so(opened):
    running, url = opened
    async with served_engine(running, mcp_trusted=(BO,)) as trusting:
        asked = {}
        for by, at in ((ANA, url), (BO, trusting)):
            text = f"{script(SENDS)} to kim@x.example"
            task = (await Wire(at, by).started(text))["taskId"]
            (request,) = await pending(running.client.get_workflow_handle(task))
            asked[by] = request
            await Wire(at, by).ask("tasks/cancel", {"taskId": task})
    (theirs,), (own,) = asked[ANA]["calls"], asked[BO]["calls"]
    assert [source["content"] for source in theirs["sources"]["/to"]] == ["others"]
    assert [(source["kind"], source["content"]) for source in own["sources"]["/to"]] == [("task", None)]
    assert "which others write" in asked[ANA]["rule"]


@promise("clients:mcp-words")
async def test_the_answer_of_a_client_is_nobodys_word_and_one_that_the_operator_trusts_is_its_persons(opened):
    running, url = opened
    async with served_engine(running, mcp_trusted=(BO,)) as trusting:
        found = {}
        for by, at in ((ANA, url), (BO, trusting)):
            client = Wire(at, by)
            task = (await client.started(script(ASK, SENDS)))["taskId"]
            ((key, _),) = (await client.until(task, "input_required"))["inputRequests"].items()
            said = {key: {"action": "accept", "content": {"answer": "kim@x.example"}}}
            await client.ask("tasks/update", {"taskId": task, "inputResponses": said})
            (request,) = await pending(running.client.get_workflow_handle(task))
            found[by] = request["calls"][0]["sources"]["/to"]
            await client.ask("tasks/cancel", {"taskId": task})
    assert [(source["kind"], source["content"]) for source in found[ANA]] == [("person", "others")]
    assert [(source["kind"], source["content"]) for source in found[BO]] == [("person", None)]


@promise("clients:mcp-waits")
async def test_a_call_waits_through_an_outage_and_tells_of_it_only_where_it_lasts():
    told_of = [Unreachable("no answer"), ServedTask.new("t"), Unreachable("no answer"), ServedTask.new("t")]
    told_of[-1] = told_of[-1]._replace(status="completed")

    async def look():
        said = told_of.pop(0) if told_of else Unreachable("no answer")
        if isinstance(said, Unreachable):
            raise said
        return said

    async def hear(_progress, _words):
        pass

    assert (await settled(look, hear, 30)).status == "completed"
    with pytest.raises(Unreachable):
        await settled(look, hear, 0)


@promise("clients:mcp-waits")
async def test_a_call_that_is_cancelled_ends_no_run_and_its_first_progress_names_it(opened):
    _, url = opened
    named = asyncio.Queue()

    async def hear(_progress, _total, message):
        named.put_nowait(message)

    async with asyncio.timeout(60), sdk_client(url, ANA) as client:
        calling = asyncio.ensure_future(
            client.call_tool("start_run", {"text": script(SENDS), "wait_s": 600}, progress_callback=hear)
        )
        run = await named.get()
        calling.cancel()
        await asyncio.wait([calling])
        seen = (await client.call_tool("follow_run", {"run": run, "wait_s": 2})).structured_content
        assert seen["status"] == "working"
        listed = (await client.call_tool("list_runs", {})).structured_content["runs"]
        assert run in [known["run"] for known in listed]
        await client.call_tool("cancel_run", {"run": run})
        ended = (await client.call_tool("follow_run", {"run": run, "wait_s": 60})).structured_content
        assert ended["status"] == "cancelled"


@promise("clients:mcp-definitions")
async def test_a_definition_is_listed_with_its_input_and_carried_out_with_words_of_others(opened):
    running, url = opened
    ana = Wire(url, ANA)
    (known,) = told(await ana.call("list_definitions"))["definitions"]
    assert (known["id"], known["input"]["required"]) == ("tell_customer", ["to"])
    wrong = await ana.call("start_run", definition="tell_customer", input={"to": 1})
    assert (wrong["isError"], "input" in wrong["content"][0]["text"]) == (True, True)
    task = await ana.call("start_run", definition="tell_customer", input={"to": "kim@x.example"})
    (request,) = await pending(running.client.get_workflow_handle(task["taskId"]))
    assert [source["content"] for source in request["calls"][0]["sources"]["/to"]] == ["others"]
    await ana.ask("tasks/cancel", {"taskId": task["taskId"]})


@promise("clients:mcp-limit")
async def test_a_run_has_a_limit_in_usd_also_where_the_profile_has_none(opened, tmp_path):
    running, _ = opened
    profiles = tmp_path / "profiles.yaml"
    for written, budget in (("null", {"max_steps": 5, "max_llm_cost_usd": 0.5}), ("2.0", {"max_steps": 5})):
        profiles.write_text(f"default: {{budget: {{max_llm_cost_usd: {written}}}}}\n", encoding="utf-8")
        async with served_engine(running, profiles=profiles) as url:
            run = (await Wire(url, ANA).started(script(DONE), budget={"max_steps": 5}))["taskId"]
        backstay = Backstay(running.client)
        task = await backstay.task_of(run, (await backstay.execution(run)).first_run_id)
        assert task["budget"] == budget


@promise("clients:mcp-starters")
async def test_only_those_whom_the_operator_names_start_runs(opened):
    _, url = opened
    cy = Wire(url, CY)
    for answer in (await cy.started(script(DONE)), await cy.call("list_definitions")):
        assert (answer["isError"], "BACKSTAY_WEB_STARTERS" in answer["content"][0]["text"]) == (True, True)


@promise("clients:mcp-restarts")
async def test_tasks_outlive_a_restart_of_the_server(opened):
    running, url = opened
    task = (await Wire(url, ANA).started(script(ASK, DONE)))["taskId"]
    async with served_engine(running) as another:
        ana = Wire(another, ANA)
        ((key, _),) = (await ana.until(task, "input_required"))["inputRequests"].items()
        said = {key: {"action": "decline"}}
        await ana.ask("tasks/update", {"taskId": task, "inputResponses": said})
        assert (await ana.until(task, "completed"))["result"]["isError"] is False


@promise("clients:mcp-listen")
async def test_who_listens_is_told_how_a_task_goes_on_in_the_words_of_tasks_get(opened):
    _, url = opened
    ana = Wire(url, ANA)
    task = (await ana.started(script(ASK, DONE)))["taskId"]
    await ana.until(task, "input_required")
    ended = (await ana.started(script(DONE)))["taskId"]
    async with ana.listening(task, ended, task) as heard:
        first = await heard()
        number = first["params"]["_meta"]
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"taskIds": [task, ended]}
        asking = await heard()
        told = await ana.get(task)
        assert (asking["method"], told.pop("resultType")) == ("notifications/tasks", "complete")
        assert asking["params"] == {**told, "_meta": number}
        ((key, _),) = told["inputRequests"].items()
        await ana.ask("tasks/update", {"taskId": task, "inputResponses": {key: {"action": "decline"}}})
        last = {}
        while not all(last.get(each, {}).get("status") == "completed" for each in (task, ended)):
            said = await heard()
            assert (said["method"], said["params"].pop("_meta")) == ("notifications/tasks", number)
            last[said["params"]["taskId"]] = said["params"]
        for each in (task, ended):
            told = await ana.get(each)
            assert {"resultType": "complete", "_meta": told["_meta"], **last[each]} == told
        # Nothing changes any more, so the server ends the stream by its own will.
        over = (await heard())["result"]
        assert (over["resultType"], over["_meta"].items() >= number.items()) == ("complete", True)


@promise("clients:mcp-listen")
async def test_a_stream_tells_again_from_the_start_after_the_server_was_stopped_amid_it(opened):
    running, url = opened
    ana = Wire(url, ANA)
    task = (await ana.started(script(ASK, DONE)))["taskId"]
    await ana.until(task, "input_required")
    async with served_engine(running) as another, Wire(another, ANA).listening(task) as heard:
        assert [(await heard())["method"] for _ in "12"][1] == "notifications/tasks"
    async with ana.listening(task) as heard:
        await heard()
        assert (await heard())["params"]["status"] == "input_required"
        await ana.ask("tasks/cancel", {"taskId": task})
        while (said := (await heard())["params"])["status"] != "cancelled":
            assert said["status"] in {"working", "input_required"}
