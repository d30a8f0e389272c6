"""What a program and its model are told of effects that stand, so that nothing is done a second time."""

import asyncio
import json
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import WorkflowUpdateStage

from backstay.testing import Reply
from sandbox.isolation.nsjail import Nsjail
from sandbox.programs.sandbox import Sandbox
from tests.e2e.labelled import Labelled, told
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import assert_no_task_failure, engine, pending, sandbox_role, update
from tests.requirements import promise
from tests.sandbox.places import image
from workflows.context import carrying
from workflows.run_task import EFFECTS

POLICY = """
allow: ["bank.*"]
ask: ["bank.sign"]
"""
CHECK = {
    "tool": "find",
    "arguments": {"id": "{{ effect.id }}"},
    "applied_if": "{{ result.payments | length > 0 }}",
    "result": "{{ result.payments[0] }}",
}
ARGUMENTS = {"type": "object", "properties": {"n": {}, "x": {}, "id": {}, "note": {"type": "string"}}}
PAID = {"data": {"payment_id": "p1"}}
LOST = {"die": True}
ANSWERS = {
    "pay": PAID,
    "pay_unheard": LOST,
    "pay_checked": LOST,
    "sign": {"data": {"signed": True}},
    "refund": {"data": {"refunded": True}},
    "find": {"data": {"payments": [{"payment_id": "found"}]}},
    "look": {"data": {"looked": True}, "until": "look-now"},
}
DECLARED = {
    "pay": {"undo": {"tool": "refund", "arguments": {"id": "{{ result.payment_id }}"}}},
    "pay_checked": {"verify": CHECK},
}
KNOWN = "[settled.tool, settled.effect, settled.by, settled.happened, isinstance(settled, ToolError)]"
CAUGHT = f"""
from sandbox_py.client import OutcomeSettled as Settled
assert Settled is OutcomeSettled
try:
    await bank.pay_unheard(n=1)
except OutcomeSettled as settled:
    known = {KNOWN}
"""
SOURCES = {
    "uncaught": "paid = await bank.pay_unheard(n=1)\nreturn paid['payment_id']",
    "caught": f"{CAUGHT}\nreturn known",
    "fed": f"{CAUGHT}\nawait bank.sign(n=2)\nreturn known",
    "checked": "return await bank.pay_checked(n=1)",
    "denied": "try:\n    await bank.pay_unheard(n=1)\nexcept ToolError as error:\n    return error.error_type",
    "finished": "await bank.pay(n=1)\nawait bank.pay(n=2)\nreturn 'paid'",
    "nothing": "return (await bank.find(id='x'))['payments']",
    "raises": "await bank.pay(note='line one\\nline two')\nraise ValueError('enough')",
    "halted": "await bank.pay(n=1)\nx = [0] * (1 << 40)\ny = x * 2",
    "budget": "await bank.pay(n=1)\nawait bank.pay(n=2)\nawait bank.pay(n=3)",
    "between": "await bank.pay(n=1)\ntry:\n    await bank.pay_unheard(n=2)\nexcept ToolError:\n    pass\n"
    "await bank.pay(n=3)",
    "beside": "await bank.pay(n=1)\nimport asyncio\nawait asyncio.gather(bank.pay(n=2), bank.sign(n=3))",
    "approved": "await bank.pay(n=1)\nawait bank.sign(n=2)",
    "foretold": "await bank.pay(n=2)\nawait bank.look()\nimport select\nselect.select([], [], [], 3)\nreturn 'paid'",
    "deviates": "import asyncio, time\nawait bank.find(id='x')\nnow = time.time_ns()\n"
    "await asyncio.gather(bank.pay(n=now), bank.pay(n=now + 1))",
    "reading": "import asyncio\nawait asyncio.gather(bank.look(), bank.find(id='x'))\nreturn 'read'",
    "undone": "await bank.pay(n=1)\nawait bank.pay_checked(n=2)\nawait bank.sign(n=3)",
    "diverged": "import _random\nawait bank.pay(n=1)\nawait bank.sign(x=_random.Random().random())\nreturn 1",
    "lost": "await bank.pay(n=1)\nawait bank.sign(n=2)\nreturn 1",
}
PAID_BEFORE = {"deviates", "foretold", "reading"}
"""The labels whose runs pay before they run the program, so that there is something to undo while it is rehearsed."""
TOLD: dict[str, str] = {}
"""By label: all that the model was told when it was asked for the last time."""


def script(label):
    def rules(conversation):
        TOLD[label] = told(conversation)
        if "finish" not in conversation.tools:
            return Reply(text="stopped")
        if label in PAID_BEFORE and not conversation.calls("bank__pay"):
            return Reply(calls=[("bank__pay", {"n": 1})])
        runs = conversation.calls("run_program")
        if not runs:
            return Reply(calls=[("run_program", {"code": SOURCES[label]})])
        return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": runs[-1].answer}})])

    return rules


def bank_of(folder):
    tools = [(reads if name in ("find", "look") else writes)(name, ARGUMENTS) for name in ANSWERS]
    return ScriptedServer(folder / "bank.json", tools, ANSWERS, DECLARED)


def opened(temporal, folder, bank, sandbox=None, **settings):
    rules = Labelled(**{label: script(label) for label in SOURCES})
    more = {"request_deadline_seconds": 2, "transient_seconds": 1, **settings}
    return engine(
        temporal,
        folder,
        rules,
        policy=POLICY,
        toolbox=toolbox_of_servers(folder, bank=bank),
        sandbox=sandbox,
        **more,
    )


class Desk:
    """One engine, and the bank that it pays with."""

    def __init__(self, engine, bank, sandbox):
        self.engine, self.bank, self.sandbox = engine, bank, sandbox
        self.before = 0

    async def start(self, label, **task):
        self.before = len(self.bank.calls())
        return await self.engine.start({"text": f"pay with the bank <{label}>", **task})

    def calls(self):
        """Return what the bank was asked for since the last start."""
        return [call["tool"] for call in self.bank.calls()[self.before :]]


@pytest_asyncio.fixture(scope="module")
async def desk(temporal, sandbox, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bank")
    bank = bank_of(folder)
    async with opened(temporal, folder, bank, sandbox) as made:
        yield Desk(made, bank, sandbox)


async def ended(handle):
    result = await asyncio.wait_for(handle.result(), 150)
    assert_no_task_failure(await handle.fetch_history())
    return result


async def decided(handle, verdict):
    (request,) = await pending(handle)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": verdict, "by": "ana"})
    return request


def answer_of(result):
    return result["raw_outputs"]["answer"]


def standing(label):
    """Return the lines in the program's answer that name what stands."""
    (answer,) = [json.loads(message["content"]) for message in json.loads(TOLD[label]) if message["role"] == "tool"]
    return answer.get(EFFECTS, [])


@promise("programs:settled")
@pytest.mark.thorough
async def test_a_call_that_a_person_says_happened_raises_what_is_known_and_is_told_as_done(desk):
    handle = await desk.start("uncaught")
    request = await decided(handle, "happened")
    result = await ended(handle)

    assert request["kind"] == "outcome"
    assert answer_of(result)["type"] == "OutcomeSettled"
    assert "bank.pay_unheard took place (effect 1, ana says so), but its answer is lost" in answer_of(result)["error"]
    assert "(line 1)" in answer_of(result)["error"]
    assert standing("uncaught") == ['effect 1: bank.pay_unheard {"n":1}: applied']
    assert desk.calls() == ["pay_unheard"]


@promise("programs:settled")
async def test_the_error_can_be_caught_and_carries_what_is_known(desk):
    handle = await desk.start("caught")
    await decided(handle, "happened")
    result = await ended(handle)

    assert answer_of(result)["data"]["result"] == ["bank.pay_unheard", 1, "ana", True, False]
    assert standing("caught") == ['effect 1: bank.pay_unheard {"n":1}: applied']
    assert desk.calls() == ["pay_unheard"]


@promise("programs:settled-replayed")
async def test_a_program_that_is_fed_its_journal_gets_the_same_error(desk):
    # The sandbox is shared by all tests of this process, and a run that was cancelled elsewhere may have left a jail.
    await desk.sandbox.forget("")
    handle = await desk.start("fed")
    await decided(handle, "happened")
    async with asyncio.timeout(150):
        while not (found := await pending(handle)) or found[0]["kind"] != "call":
            await asyncio.sleep(0.05)
    assert await desk.sandbox.forget("") == 1
    await decided(handle, "approve")
    result = await ended(handle)

    assert answer_of(result)["data"]["result"] == ["bank.pay_unheard", 1, "ana", True, False]
    assert desk.calls() == ["pay_unheard", "sign"]


@promise("programs:settled-found")
async def test_a_check_that_finds_the_result_still_gives_it_to_the_program(desk):
    result = await ended(await desk.start("checked"))

    assert answer_of(result)["data"]["result"] == {"payment_id": "found"}
    assert desk.calls() == ["pay_checked", "find"]


@promise("programs:settled-never")
async def test_a_call_that_a_person_says_did_not_happen_is_a_tool_error_and_does_not_stand(desk):
    handle = await desk.start("denied")
    await decided(handle, "did_not_happen")
    result = await ended(handle)

    assert answer_of(result)["data"]["result"] == "DidNotHappen"
    assert standing("denied") == []


PAY = 'effect {}: bank.pay {{"n":{}}}: applied'


@promise("programs:stands")
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("label", "kind", "stands"),
    [
        ("finished", None, [PAY.format(1, 1), PAY.format(2, 2)]),
        ("nothing", None, []),
        ("raises", "ValueError", ['effect 1: bank.pay {"note":"line one⏎line two"}: applied']),
        ("halted", "MemoryLimit", [PAY.format(1, 1)]),
    ],
)
async def test_however_a_program_ends_its_model_is_told_which_effects_stand(desk, label, kind, stands):
    result = await ended(await desk.start(label))

    assert result["outcome"] == "completed"
    assert answer_of(result).get("type") == kind
    assert standing(label) == stands


@promise("programs:stands")
async def test_a_program_that_ends_with_its_budget_is_told_of_in_the_closing_summary(desk):
    result = await ended(await desk.start("budget", budget={"max_tool_calls": 2}))

    assert result["outcome"] == "budget_exceeded"
    assert desk.calls() == ["pay", "pay"]
    told_last = json.loads(TOLD["budget"])[-1]["content"]
    assert json.loads(told_last.rpartition("note: ")[2])[EFFECTS] == [PAY.format(1, 1), PAY.format(2, 2)]


@promise("programs:stands")
@pytest.mark.thorough
async def test_a_program_whose_effects_were_undone_is_told_what_could_not_be(desk):
    handle = await desk.start("undone")
    await pending(handle)
    await handle.execute_update("undo", {"by": "ana"})
    result = await ended(handle)

    assert answer_of(result)["type"] == "ProgramCancelled"
    assert standing("undone") == ["effect 2: bank.pay_checked: kept"]


@promise("programs:cancelled-before-next")
@pytest.mark.parametrize(
    ("label", "verdict", "made"),
    [("between", "did_not_happen", ["pay", "pay_unheard"]), ("approved", "approve", ["pay"])],
)
async def test_an_undo_while_the_run_is_paused_ends_the_program_before_its_next_call(desk, label, verdict, made):
    handle = await desk.start(label)
    await pending(handle)
    await handle.execute_update("pause", {"by": "ana"})
    await decided(handle, verdict)
    await handle.execute_update("undo", {"by": "ana"})
    await handle.execute_update("resume", {"by": "ana"})
    result = await ended(handle)

    assert answer_of(result)["type"] == "ProgramCancelled"
    assert desk.calls() == [*made, "refund"]


@promise("programs:cancelled-before-next")
async def test_an_undo_also_keeps_back_what_needs_no_question_beside_what_does(desk):
    handle = await desk.start("beside")
    await pending(handle)
    await handle.execute_update("undo", {"by": "ana"})
    result = await ended(handle)

    assert answer_of(result)["type"] == "ProgramCancelled"
    assert desk.calls() == ["pay", "refund"]


@promise("programs:cancelled-before-next")
async def test_an_undo_before_the_run_goes_on_as_a_new_execution_still_ends_the_program(
    temporal, sandbox, tmp_path, monkeypatch
):
    # More than there are until the question is answered.
    monkeypatch.setattr(carrying, "MOST_EVENTS", 150)
    bank = bank_of(tmp_path)
    async with opened(temporal, tmp_path, bank, sandbox) as made:
        handle = await made.start({"text": "pay with the bank <between>"})
        (request,) = await pending(handle)
        await update(handle, "pause", {"by": "ana"})
        await update(handle, "decide", {"request_id": request["id"], "verdict": "did_not_happen", "by": "ana"})
        await update(handle, "undo", {"by": "ana"})
        undone = (await handle.describe()).run_id
        async with asyncio.timeout(150):
            while (await handle.describe()).run_id == undone:
                # Each makes the history longer, and decides nothing.
                await handle.signal("approval", {"request_id": "unknown", "verdict": "approve", "by": "ana"})
        await update(handle, "resume", {"by": "ana"})
        result = await ended(handle)

    assert answer_of(result)["type"] == "ProgramCancelled"
    assert [call["tool"] for call in bank.calls()] == ["pay", "pay_unheard", "refund"]


async def undone_while_looking(desk, handle):
    """Undo the effects of a run whose program waits for a read, which ends once the undo was asked for."""
    go_on = desk.bank.path.with_name("look-now")
    async with asyncio.timeout(150):
        while "look" not in desk.calls():
            await asyncio.sleep(0.05)
    undo = await handle.start_update("undo", {"by": "ana"}, wait_for_stage=WorkflowUpdateStage.ACCEPTED)
    go_on.touch()
    await undo.result()
    go_on.unlink()


@promise("programs:cancelled-rehearsal")
async def test_an_undo_during_the_last_round_of_a_rehearsal_does_not_let_it_pass_for_the_program(desk):
    handle = await desk.start("foretold", rehearse=True)
    await undone_while_looking(desk, handle)
    result = await ended(handle)

    assert answer_of(result)["type"] == "ProgramCancelled"
    assert desk.calls() == ["pay", "look", "refund"]


@promise("programs:cancelled-rehearsal")
async def test_a_rehearsal_reads_nothing_further_after_an_undo(desk):
    handle = await desk.start("reading", rehearse=True)
    await undone_while_looking(desk, handle)
    result = await ended(handle)

    assert answer_of(result)["type"] == "ProgramCancelled"
    assert desk.calls() == ["pay", "look", "refund"]


@promise("programs:cancelled-not-as-foretold")
async def test_an_undo_withdraws_the_question_about_a_write_that_is_not_as_foretold_and_asks_about_no_other(desk):
    handle = await desk.start("deviates", rehearse=True)
    await decided(handle, "approve")
    async with asyncio.timeout(150):
        while not (found := await pending(handle)) or found[0]["kind"] != "call":
            await asyncio.sleep(0.05)
    await handle.execute_update("undo", {"by": "ana"})
    result = await ended(handle)

    assert answer_of(result)["type"] == "ProgramCancelled"
    assert [call for call in desk.calls() if call != "find"] == ["pay", "refund"]
    told = [event["name"] for event in result["events"] if event["name"].startswith("approval.")]
    assert told == ["approval.asked", "approval.decided", "approval.asked", "approval.withdrawn"]


@promise("programs:stands")
@pytest.mark.thorough
async def test_a_program_that_diverges_leaves_its_model_told(desk):
    handle = await desk.start("diverged")
    await pending(handle)
    await desk.sandbox.forget("")
    await decided(handle, "approve")
    result = await ended(handle)

    assert answer_of(result)["type"] == "ProgramDiverged"
    (first, signed) = standing("diverged")
    assert first == PAY.format(1, 1)
    assert signed.startswith("effect 2: bank.sign")
    assert desk.calls() == ["pay", "sign"]


@promise("programs:stands")
@pytest.mark.thorough
async def test_a_program_whose_jail_cannot_be_made_again_ends_and_its_run_goes_on(temporal, sandbox, tmp_path):
    bank = bank_of(tmp_path)
    built = await asyncio.to_thread(image)
    broken = Nsjail(path=Path("/bin/false"), version="unknown", sha256="0" * 64)
    other = Sandbox(nsjail=broken, image=built, images=built.path.parents[1], folder=tmp_path / "jails", ready=0)
    async with opened(temporal, tmp_path, bank) as made, other:
        async with sandbox_role(made.client, made.settings, sandbox):
            handle = await made.start({"text": "pay with the bank <lost>"})
            await pending(handle)
            await sandbox.forget("")
        async with sandbox_role(made.client, made.settings, other):
            await decided(handle, "approve")
            async with asyncio.timeout(150):
                while not (found := await pending(handle)) or found[0]["kind"] != "outcome":
                    await asyncio.sleep(0.05)
            await decided(handle, "reject")
            result = await ended(handle)

    assert "retry" in found[0]["options"]
    assert result["outcome"] == "completed", result
    assert answer_of(result)["type"] == "SandboxLost"
    assert standing("lost") == [PAY.format(1, 1), 'effect 2: bank.sign {"n":2}: applied']
