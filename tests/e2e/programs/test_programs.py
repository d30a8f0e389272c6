"""Programs that the model writes: every call they make is ruled, asked about, charged and undoable."""

import asyncio
import json
import tempfile
import textwrap
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError

from backstay.approvals.whole import unseen, with_all
from backstay.client import Backstay
from backstay.testing import Reply
from sandbox.isolation.nsjail import Nsjail
from sandbox.programs.sandbox import Sandbox
from tests.engine import assert_no_task_failure, pending, sandbox_role
from tests.requirements import promise
from tests.sandbox.places import image, shared
from tests.sizes import spread

ADDRESSES = [f"c{n}@example.com" for n in range(3)]


def one_program(source):
    """Return rules that run one program and finish with its answer."""

    def rules(conversation):
        if "finish" not in conversation.tools:
            return Reply(text="stopped")
        if "run_program" not in conversation.tools:
            return Reply(calls=[("finish", {"summary": "no programs here", "success": False})])
        runs = conversation.calls("run_program")
        if not runs:
            return Reply(text="A program does it.", calls=[("run_program", {"code": source})])
        outputs = {"answer": runs[-1].answer}
        return Reply(calls=[("finish", {"summary": "done", "outputs": outputs, "success": True})])

    return rules


async def answer_of(engine, **task):
    handle = await engine.start({"text": "run it", **task})
    result = await asyncio.wait_for(handle.result(), 150)
    assert_no_task_failure(await handle.fetch_history())
    return result, result["raw_outputs"]["answer"]


SEND = f"""
import asyncio
from sandbox_py.client import ToolError

async def main():
    first = await mail.list_customers(limit=1)
    print("customers", first["total"])
    sent = await asyncio.gather(*(mail.send_email(to=to, subject="hello", body="b") for to in {ADDRESSES}))
    return {{"total": first["total"], "ids": [one["message_id"] for one in sent]}}
"""


@promise("programs:one-path")
@pytest.mark.thorough
async def test_a_program_reads_computes_and_sends_after_one_approval_for_all_its_mails(open_engine, sandbox):
    async with open_engine(one_program(SEND), sandbox=sandbox) as engine:
        handle = await engine.start({"text": "write to all"})
        (request,) = await pending(handle)

        assert request["kind"] == "batch"
        assert [call["arguments"]["to"] for call in request["calls"]] == ADDRESSES
        assert engine.mailbox.sent() == []
        assert "send_email(to=to, subject=" in request["program"]["arguments"]["source"]

        decision = {
            "request_id": request["id"],
            "verdict": "approve",
            "by": "ann",
            "args_digest": request["args_digest"],
        }
        await handle.execute_update("decide", decision)
        result = await asyncio.wait_for(handle.result(), 150)

        assert result["outcome"] == "completed", result
        answer = result["raw_outputs"]["answer"]["data"]
        assert len(answer["result"]["ids"]) == 3
        assert answer["output"] == f"customers {answer['result']['total']}\n"
        assert sorted(engine.mailbox.sent()) == ADDRESSES
        assert result["usage"]["code_runs"] == 1
        assert result["usage"]["tool_calls"] == 4
        assert [effect["state"] for effect in result["effects"]] == ["applied"] * 3
        assert_no_task_failure(await handle.fetch_history())


@promise("programs:one-path")
async def test_a_rejected_call_is_an_error_that_the_program_can_catch(open_engine, sandbox):
    source = """
    from sandbox_py.client import ToolError
    try:
        await mail.send_email(to="a@example.com", subject="s", body="b")
    except ToolError as error:
        return {"caught": str(error)}
    """
    async with open_engine(one_program(textwrap.dedent(source)), sandbox=sandbox) as engine:
        handle = await engine.start({"text": "write"})
        (request,) = await pending(handle)
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ann"})
        result = await asyncio.wait_for(handle.result(), 150)

        assert "rejected by ann" in result["raw_outputs"]["answer"]["data"]["result"]["caught"]
        assert engine.mailbox.requests("send_email") == 0


@promise("programs:ends")
@pytest.mark.parametrize(
    ("source", "says"),
    spread(
        [
            ("return 1 / 0", "ZeroDivisionError"),
            ("import time\nwhile True:\n    time.sleep(1)", "wall"),
            ("x = [0] * (1 << 40)", "Memory"),
            ("import os; os._exit(3)", ""),
            ("return {1, 2}", "JSON"),
            ("print('x' * (4 << 20))", "output"),
            ("await mail.send_email(subject='s', to=3, body='b')", "to"),
        ],
        4,
    ),
    ids=spread(["raises", "loops", "memory", "exits", "no-json", "output", "arguments"], 4),
)
async def test_a_program_that_fails_is_an_answer_with_its_cause_and_the_run_goes_on(open_engine, sandbox, source, says):
    async with open_engine(one_program(source), sandbox=sandbox) as engine:
        result, answer = await answer_of(engine)

        assert result["outcome"] == "completed", result
        assert says in json.dumps(answer), answer
        assert answer["error"]


@promise("programs:checked")
async def test_a_faulty_program_is_refused_before_it_runs_and_costs_no_run(open_engine, sandbox):
    async with open_engine(one_program("await mail.send_mail(to='a')\nimport ctypes"), sandbox=sandbox) as engine:
        result, answer = await answer_of(engine)

        assert "line 1" in answer["error"]
        assert "send_email" in answer["error"]
        assert "ctypes" in answer["error"]
        assert result["usage"]["code_runs"] == 0


@promise("programs:not-offered")
async def test_where_no_sandbox_worker_polls_no_program_is_offered(open_engine):
    async with open_engine(one_program("return 1")) as engine:
        handle = await engine.start({"text": "run it"})
        result = await asyncio.wait_for(handle.result(), 150)

        assert result["final_summary"] == "no programs here"


@promise("programs:policy")
async def test_a_policy_may_ask_about_the_program_itself_and_shows_its_source(open_engine, sandbox):
    policy = "ask: [engine.run_program]\n"
    async with open_engine(one_program("return 7"), sandbox=sandbox, policy=policy) as engine:
        handle = await engine.start({"text": "run it"})
        (request,) = await pending(handle)

        assert (request["kind"], request["options"]) == ("program", ["approve", "reject"])
        assert request["calls"][0]["arguments"]["source"] == "return 7"
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ann"})
        result = await asyncio.wait_for(handle.result(), 150)

        assert result["raw_outputs"]["answer"]["data"]["result"] == 7


@promise("budget:code-runs")
async def test_programs_count_against_their_limits(open_engine, sandbox):
    source = """
from sandbox_py.client import ToolError
done = []
for n in range(4):
    try:
        await mail.list_customers(limit=1)
        done.append(n)
    except ToolError as error:
        return {"done": done, "error": str(error)}
"""
    async with open_engine(one_program(source), sandbox=sandbox) as engine:
        result, answer = await answer_of(engine, budget={"max_calls_per_program": 2})

        assert answer["data"]["result"]["done"] == [0, 1]
        assert "max_calls_per_program" in answer["data"]["result"]["error"]
        assert result["usage"]["tool_calls"] == 2
        left = [request["messages"][-1]["content"] for request in engine.model.requests]
        assert [line.split(", ")[2] for line in left] == ["3 programs", "2 programs"]


@promise("programs:results")
async def test_a_program_reads_an_earlier_answer_whole(open_engine, sandbox):
    def rules(conversation):
        if "finish" not in conversation.tools:
            return Reply(text="stopped")
        listed = conversation.calls("mail__list_customers")
        if not listed:
            return Reply(calls=[("mail__list_customers", {"limit": 100})])
        runs = conversation.calls("run_program")
        if not runs:
            answer = listed[0].answer
            ref = answer.get("storage_ref") or answer["ref"]
            return Reply(
                calls=[("run_program", {"code": f"page = await result({ref!r})\nreturn len(page['customers'])"})]
            )
        return Reply(calls=[("finish", {"summary": "ok", "outputs": {"answer": runs[0].answer}, "success": True})])

    async with open_engine(rules, sandbox=sandbox) as engine:
        _, answer = await answer_of(engine)
        ((count,),) = engine.mailbox.rows("SELECT count(*) FROM customers")

        assert answer["data"]["result"] == min(count, 100)


@promise("programs:sampled")
async def test_one_in_so_many_programs_is_run_again_and_a_difference_is_an_event(open_engine, sandbox):
    # Its default seed is one of the few things that nothing rules.
    source = "import _random\nawait mail.list_customers(limit=1)\nreturn _random.Random().random()"
    for sampled, diverged in ((source, 1), ("return 1", 0)):
        async with open_engine(one_program(sampled), sandbox=sandbox, program_sample_every=1) as engine:
            result, _ = await answer_of(engine)

            assert result["outcome"] == "completed"
            assert [event["name"] for event in result["events"]].count("program.diverged") == diverged


@promise("programs:left")
async def test_no_jail_waits_for_a_run_that_has_ended(open_engine, sandbox):
    await sandbox.forget("")  # other tests of the process share it and leave runs waiting
    source = "await mail.send_email(to='a@example.com', subject='s', body='b')"
    async with open_engine(one_program(source), sandbox=sandbox) as engine:
        handle = await engine.start({"text": "write"})
        await pending(handle)
        assert sandbox.kept == 1
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 150)

        assert sandbox.kept == 0
        assert engine.mailbox.requests("send_email") == 0
        assert_no_task_failure(await handle.fetch_history())


@pytest.fixture
def images():
    """A folder for images that every user can reach: jails are other users."""
    with tempfile.TemporaryDirectory(dir=shared()) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@promise("sandbox:image-gone")
async def test_a_program_whose_image_is_gone_waits_for_the_operator_and_goes_on_in_no_other(
    open_engine, sandbox, images
):
    source = "sent = await mail.send_email(to='a@example.com', subject='s', body='b')\nreturn sent['to']"
    another = Sandbox(nsjail=Nsjail.find(), image=image("data"), images=images, folder=images, ready=0)
    async with open_engine(one_program(source), transient_seconds=0.5) as engine, another:
        async with sandbox_role(engine.client, engine.settings, sandbox):
            handle = await engine.start({"text": "write"})
            (request,) = await pending(handle)
            await sandbox.forget("")
        async with sandbox_role(engine.client, engine.settings, another):
            await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ann"})
            (request,) = await pending(handle)
            (images / sandbox.image_hash).symlink_to((await asyncio.to_thread(image)).path.parent)
            await handle.execute_update("decide", {"request_id": request["id"], "verdict": "retry", "by": "ann"})
            result = await asyncio.wait_for(handle.result(), 150)

        assert request["kind"] == "outcome"
        assert f"the image {sandbox.image_hash} is not in {images}; bring it back" in request["question"]
        assert result["raw_outputs"]["answer"]["data"]["result"] == "a@example.com"
        assert engine.mailbox.requests("send_email") == 1
        assert_no_task_failure(await handle.fetch_history())


async def decide(handle, request, verdict, **more):
    decision = {"request_id": request["id"], "verdict": verdict, "by": "ann", "args_digest": request["args_digest"]}
    return await handle.execute_update("decide", {**decision, **more})


@promise("programs:as-written")
async def test_code_runs_as_it_was_written_whatever_its_names_are_and_no_secret_stands_in_it(open_engine, sandbox):
    source = """
token, password = 0, "password: 1"
while token is not None and token < 4:
    page = await mail.list_customers(offset=token, limit=2)
    token = token + 2 if page["has_more"] else None
session_id = f"token={token}"
return [token, len(session_id), len(password)]
"""
    async with open_engine(one_program(source), sandbox=sandbox) as engine:
        _, answer = await answer_of(engine)
        assert answer["data"]["result"] == [4, 7, 11], answer

    key = "sk-" + "a1B2" * 10
    async with open_engine(one_program(f"x = 1\ny = '{key}'"), sandbox=sandbox) as engine:
        handle = await engine.start({"text": "run it"})
        result = await asyncio.wait_for(handle.result(), 150)
        assert "line 2: a secret (openai_key)" in json.dumps(result["raw_outputs"])
        assert key not in (await handle.fetch_history()).to_json()


@promise("programs:approved-whole")
async def test_what_is_approved_of_a_long_program_is_all_of_it(open_engine, sandbox):
    policy = "ask: [engine.run_program]\ndeny: [{tool: engine.run_program, when: {source: {contains: evil}}}]\n"
    digests = []
    for end in ("1", "2"):
        source = f"x = '{'a' * 5000}'\nreturn {end}  # evil"
        async with open_engine(one_program(source), sandbox=sandbox, policy=policy) as engine:
            handle = await engine.start({"text": "run it"})
            (request,) = await pending(handle)
            shown = request["calls"][0]
            digests.append(request["args_digest"])
            await decide(handle, request, "reject")
            await asyncio.wait_for(handle.result(), 150)

        assert shown["arguments"]["begins_with"].startswith("x = 'aaa")
        assert shown["arguments"]["source"]["bytes"] == len(source)
        assert "deny[0]" in request["rule"], request
    assert digests[0] != digests[1]


@promise("programs:denied-whole")
async def test_a_rule_that_denies_a_long_program_is_final_whoever_approved(open_engine, sandbox):
    policy = "ask: [engine.run_program]\ndeny: [{tool: engine.run_program, when: {source: {contains: evil}}}]\n"
    said = []
    for end in ("evil", "good"):
        source = f"x = '{'a' * 5000}'\nawait mail.list_customers(limit=1)\nreturn '{end}'"
        async with open_engine(one_program(source), sandbox=sandbox, policy=policy) as engine:
            handle = await engine.start({"text": "run it"})
            (request,) = await pending(handle)
            await decide(handle, request, "approve")
            result = await asyncio.wait_for(handle.result(), 150)
            said.append((result["raw_outputs"]["answer"], engine.mailbox.requests("list_customers")))
            assert_no_task_failure(await handle.fetch_history())

    (denied, read), (ran, read_then) = said
    assert (denied["type"], read) == ("Denied", 0)
    assert "denied by the policy: deny[0]" in denied["error"]
    assert (ran["data"]["result"], read_then) == ("good", 1)


@promise("programs:cancelled")
async def test_a_program_ends_when_a_person_undoes_what_it_did(open_engine, sandbox):
    await sandbox.forget("")
    source = """
await mail.send_email(to="a@example.com", subject="s", body="b")
await mail.send_email(to="b@example.com", subject="s", body="b")
return "sent"
"""
    async with open_engine(one_program(source), sandbox=sandbox) as engine:
        handle = await engine.start({"text": "write"})
        (request,) = await pending(handle)
        await decide(handle, request, "approve")
        async with asyncio.timeout(150):
            while (request := (await pending(handle))[0])["calls"][0]["arguments"]["to"] != "b@example.com":
                await asyncio.sleep(0.05)
        await handle.execute_update("undo", {"by": "ann"})
        result = await asyncio.wait_for(handle.result(), 150)

        assert result["raw_outputs"]["answer"]["type"] == "ProgramCancelled", result["raw_outputs"]
        assert engine.mailbox.sent() == []
        assert engine.mailbox.requests("send_email") == 1
        assert sandbox.kept == 0
        assert_no_task_failure(await handle.fetch_history())


@promise("budget:time")
async def test_time_runs_out_between_the_calls_of_a_program_too(open_engine, sandbox):
    source = """
import select
for n in range(20):
    await mail.list_customers(limit=1)
    select.select([], [], [], 1)
"""
    async with open_engine(one_program(source), sandbox=sandbox) as engine:
        handle = await engine.start({"text": "read", "budget": {"max_wall_seconds": 8}})
        result = await asyncio.wait_for(handle.result(), 150)

        assert result["outcome"] == "budget_exceeded"
        assert "max_wall_seconds" in result["final_summary"]
        assert 0 < engine.mailbox.requests("list_customers") < 20


@promise("programs:batch-size")
async def test_what_is_too_much_for_one_batch_is_an_error_that_the_program_can_catch(open_engine, sandbox):
    source = """
import asyncio
from sandbox_py.client import ToolError
async def one(n):
    try:
        await mail.search_messages(query="ab cd " * 30 + str(n) + " " * (n // 1000))
    except ToolError as error:
        return error.error_type
    return "ok"
small = await asyncio.gather(*(one(n) for n in range(3)))
many = {str(n): ["x" * 1000] * 20 for n in range(20)}
try:
    await mail.send_email(to="a@example.com", subject="s", body=many)
except ToolError as error:
    return [small, error.error_type, str(error)]
"""
    async with open_engine(one_program(source), sandbox=sandbox) as engine:
        _, answer = await answer_of(engine)

        small, kind, said = answer["data"]["result"]
        assert small == ["ok"] * 3
        assert kind == "ArgumentsInvalid"
        assert "body" in said or "131072" in said


@promise("programs:shared-blobs")
async def test_a_sandbox_worker_that_does_not_see_what_the_run_stored_says_so(open_engine, sandbox, tmp_path):
    async with open_engine(one_program("return 1"), folder=tmp_path / "runs", transient_seconds=1) as engine:
        elsewhere = engine.settings.model_copy(update={"blobs": tmp_path / "elsewhere"})
        async with sandbox_role(engine.client, elsewhere, sandbox):
            result, answer = await answer_of(engine)

        assert result["outcome"] == "completed"
        assert answer["type"] == "WorkerMisfit"
        assert "BACKSTAY_BLOBS" in answer["error"]
        assert "BACKSTAY_BLOBS" in result["programs_unavailable"]


@promise("workers:programs")
async def test_a_result_says_why_programs_could_not_run_and_nothing_when_they_did(open_engine, sandbox, tmp_path):
    async with open_engine(one_program("return 1"), folder=tmp_path / "without") as engine:
        result = await asyncio.wait_for((await engine.start({"text": "run it"})).result(), 150)
        planned = {"steps": [{"tool": "mail.list_customers"}]}
        plain = await asyncio.wait_for((await engine.start({"plan": planned})).result(), 150)
    async with open_engine(one_program("return 1"), folder=tmp_path / "with", sandbox=sandbox) as engine:
        ran, _ = await answer_of(engine)

    assert result["programs_unavailable"] == "no worker of the sandbox role answered when the run began"
    assert [found.get("programs_unavailable") for found in (plain, ran)] == [None, None]


@promise("programs:blocked")
async def test_whoever_is_asked_about_a_program_sees_what_an_operator_warns_of(open_engine, sandbox):
    source = "import os\nnumber = eval('1 + 1')\nreturn number"
    policy = "ask: [engine.run_program]\n"
    async with open_engine(one_program(source), sandbox=sandbox, policy=policy) as engine:
        handle = await engine.start({"text": "compute"})
        (request,) = await pending(handle)
        assert request["calls"][0]["arguments"]["warnings"] == ["line 2: uses eval"]
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        result = await asyncio.wait_for(handle.result(), 150)
        assert result["raw_outputs"]["answer"]["data"]["result"] == 2, result
        started = [event for event in result["events"] if event["name"] == "program.started"]
        assert [event["data"]["warnings"] for event in started] == [["line 2: uses eval"]]


@promise("programs:told-of-changes")
async def test_what_people_change_of_a_programs_call_is_told_to_the_model_and_the_source_can_be_read_whole(
    open_engine, sandbox
):
    comment = "# " + "a long comment, " * 500
    source = f"{comment}\nreturn await mail.send_email(to='a@example.com', subject='s', body='b')"
    async with open_engine(one_program(source), sandbox=sandbox) as engine:
        handle = await engine.start({"text": "write"})
        (request,) = await pending(handle)
        run = Backstay(engine.client).run(handle.id)
        (asked,) = await run.pending()
        whole = with_all(asked, await run.whole(asked))
        change = {"verdict": "modify", "arguments": {"to": "b@example.com"}}
        said = {"request_id": request["id"], "verdict": "modify", "by": "ann", "calls": {"0": change}}
        await handle.execute_update("decide", said | {"args_digest": request["args_digest"], "comment": "b does that"})
        result = await asyncio.wait_for(handle.result(), 150)

        assert unseen(asked)
        assert unseen(whole) == ""
        assert str(whole.program.arguments["source"]).endswith("body='b')")
        assert engine.mailbox.sent() == ["b@example.com"]
        (told,) = result["raw_outputs"]["answer"]["decided_by_people"]
        assert (told["tool"], told["by"], told["comment"]) == ("mail.send_email", "ann", "b does that")
        assert told["sent_with_other_arguments"] == {"to": "b@example.com"}
