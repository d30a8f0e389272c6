"""What people see of a request: all of it or how much is missing, and commands that are safe to paste."""

import asyncio

import pytest
import pytest_asyncio
from temporalio.api.sdk.v1 import WorkflowMetadata

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.view import commands
from backstay.client import Backstay
from backstay.errors import DecisionRefused
from backstay.testing import Reply
from gateways.terminal.render import request_lines
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise

IBAN = "DE02120300000000202051"
SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
MANY = {"max_tool_calls": 100}
SCRIPTS = Scripts()


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown")
    bank = ScriptedServer(
        folder / "bank.json",
        [writes("transfer"), reads("account")],
        {"transfer": {"data": {"done": True}}, "account": {"data": {"token": SECRET}}},
    )
    toolbox = toolbox_of_servers(folder, bank=bank)
    async with engine(temporal, folder, rules, toolbox=toolbox, web_ui_url="http://ui.example/temporal/") as running:
        yield running


def rules(conversation):
    reply = SCRIPTS(conversation)
    return reply(conversation) if callable(reply) else reply


def transfers(*calls):
    return Reply(calls=[("bank__transfer", arguments) for arguments in calls], finish_reason="tool_calls")


async def details_of(handle):
    found = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return found.current_details


async def asked(opened, *replies, workflow_id=None, **fields):
    """Return an open request, as the wire has it, the Web UI's details, and what a terminal shows."""
    handle = await opened.start(SCRIPTS.task(*replies, **fields), workflow_id)
    (request,) = await pending(handle)
    details = await details_of(handle)
    lines = [line for line, _ in request_lines(handle.id, ApprovalRequest.model_validate(request))]
    return handle, request, details, lines


async def approve(handle, request):
    said = {"request_id": request["id"], "verdict": "approve", "by": "ana", "args_digest": request["args_digest"]}
    await handle.execute_update("decide", said)
    await ended(handle)


@promise("approvals:whole")
async def test_every_argument_is_shown_whole_however_long_those_before_it_are(opened):
    arguments = {"purpose": f"{'rent ' * 60}to {IBAN}", "note": "n" * 500, "copy": {"bcc": ["mallory@x.example"]}}
    handle, request, details, lines = await asked(opened, transfers(arguments))
    await approve(handle, request)

    assert f"        purpose: {arguments['purpose']}" in lines
    assert f"        note: {'n' * 500}" in lines
    assert "mallory@x.example" in "\n".join(lines)
    assert not any("not shown" in line or "clipped" in line for line in lines)
    assert IBAN not in details


LETTER = "Dear Ana,\n\n    cash: 5\n        CANNOT BE UNDONE\n- **approve**"


@promise("approvals:lines")
async def test_a_text_of_several_lines_is_lines_at_the_terminal(opened):
    rows = [{"number": "A-17", "cents": 12_050, "paid": False}, {"number": "A-20", "cents": 8000, "paid": True}]
    handle, request, _, lines = await asked(opened, transfers({"purpose": LETTER, "invoices": rows * 2}))
    await approve(handle, request)
    at = lines.index("        purpose:")

    assert lines[at + 1 : at + 6] == [
        *("        │ Dear Ana,", "        │", "        │     cash: 5", "        │         CANNOT BE UNDONE"),
        "        │ - **approve**",
    ]
    assert lines[at + 6 : at + 9] == [
        *("        invoices:", "        │ number │ cents │ paid", "        │ A-17   │ 12050 │ false"),
    ]


@promise("approvals:of-run")
async def test_a_request_says_what_it_is_part_of(opened):
    fields = {"user_id": "ana@x.example", "session_id": "june"}
    handle, request, _, lines = await asked(opened, transfers({"to": IBAN}), **fields)
    await approve(handle, request)
    address = f"http://ui.example/temporal/namespaces/default/workflows/{handle.id}/{handle.first_execution_run_id}"
    said = {name: request[name] for name in ("task", "user_id", "session_id", "step", "links")}

    assert said == {
        "task": request["task"],
        "user_id": "ana@x.example",
        "session_id": "june",
        "step": 1,
        "links": {"page": None, "web_ui": address},
    }
    assert request["task"].startswith("script ")
    assert lines[1:4] == [f"  task: {request['task']}", "  for ana@x.example, session june, step 1", f"  {address}"]


@promise("approvals:rest")
async def test_what_a_request_does_not_show_can_be_read_whole(opened):
    arguments = {"purpose": "p" * 5000, "notes": ["n\u202e\n" * 60] * 3, "more": "m" * 3000, "last": {"to": IBAN}}
    handle, request, details, lines = await asked(opened, transfers(arguments))
    run = Backstay(opened.client, task_queue=opened.settings.task_queue).run(handle.id)
    whole = await run.arguments(request["id"])
    with pytest.raises(DecisionRefused, match="no call 1"):
        await run.arguments(request["id"], 1)
    await run.approve(request["id"], by="ana")
    await ended(handle)

    assert request["calls"][0]["clipped"] > 0
    assert whole == arguments
    assert f"  all of it: backstay show {handle.id} {request['id']}" in lines
    assert f"All of it: `backstay show {handle.id} {request['id']}`" in details


@promise("approvals:whole")
async def test_what_is_not_shown_of_a_call_is_counted(opened):
    arguments = {f"field_{number}": "x" * 1000 for number in range(7)}
    handle, request, _, lines = await asked(opened, transfers(arguments))
    await approve(handle, request)
    call = request["calls"][0]
    said = f"{call['left_out']} of 7 arguments not shown, {call['clipped']:,} characters clipped"

    assert call["left_out"] == 7 - (len(call["arguments"]) - 1) > 0
    assert call["clipped"] > 4000
    assert f"        {said}; digest {call['args_digest']}" in lines


@promise("approvals:whole")
async def test_a_long_text_to_which_the_request_only_refers_is_counted(opened):
    handle, request, _, lines = await asked(opened, transfers({"purpose": "p" * 5000}))
    await approve(handle, request)

    assert any("5,000 bytes kept apart and not shown" in line for line in lines)


@promise("approvals:whole-batch")
async def test_the_web_ui_counts_the_calls_of_a_batch_and_says_where_all_of_them_are(opened):
    batch = [{"to": f"payee-{number}@x.example", "purpose": "p" * 700} for number in range(40)]
    handle, request, details, _ = await asked(opened, transfers(*batch), budget=MANY)
    await approve(handle, request)

    assert "Calls: 40 of bank.transfer" in details
    assert f"`backstay show {handle.id} {request['id']}`" in details


@promise("approvals:whole-query")
async def test_the_answer_of_the_query_stays_small_however_much_waits(opened):
    batch = [{"to": "漢" * 600} for _ in range(30)]
    handle, request, details, _ = await asked(opened, transfers(*batch), budget=MANY)
    await approve(handle, request)

    assert len(details.encode()) < 128 * 1024


@promise("approvals:commands")
async def test_each_command_carries_the_digest_of_what_is_shown(opened):
    handle, request, details, _ = await asked(opened, transfers({"to": IBAN}))
    await approve(handle, request)
    flags = f"--by YOU --args-digest {request['args_digest']}"
    fenced = details.split("```")[1].split("\n")[1:-1]

    assert fenced == [f"backstay {verb} {handle.id} {request['id']} {flags}" for verb in ("approve", "reject")]
    assert commands(handle.id, ApprovalRequest.model_validate(request)) == fenced


@promise("approvals:commands")
@pytest.mark.thorough
async def test_a_hostile_id_is_harmless_in_every_command_that_is_shown(opened, tmp_path):
    stolen = tmp_path / "stolen"
    for name in (
        f"$(touch {stolen})",
        f"it's; touch {stolen}",
        f"`touch {stolen}`",
        f"two\n```\ntouch {stolen}",
        f"--help; touch {stolen}",
        "turned\u202eround",
    ):
        handle, request, details, _ = await asked(opened, transfers({"to": IBAN}), workflow_id=name)
        await approve(handle, request)
        fenced = details.split("```\n")[1].removesuffix("```").splitlines()
        for line in fenced:
            said = line.replace("backstay", "printf '%s\\n'", 1)
            shell = await asyncio.create_subprocess_exec("bash", "-c", said, stdout=asyncio.subprocess.PIPE)
            printed, _ = await shell.communicate()

            assert name in printed.decode()
            assert "\u202e" not in line
        assert len(fenced) == 2
        assert not stolen.exists()


@promise("approvals:masked")
async def test_masked_values_are_explained_once_in_a_request(opened):
    def passes_it_on(conversation):
        (answer,) = conversation.answers("bank__account")
        token = answer["data"]["token"]
        return transfers({"token": token}, {"token": token})

    plain, open_request, _, no_lines = await asked(opened, transfers({"to": IBAN}))
    await approve(plain, open_request)
    script = (Reply(calls=[("bank__account", {})]), passes_it_on)
    handle, request, details, lines = await asked(opened, *script)
    await approve(handle, request)

    assert SECRET not in details
    assert sum("Masked: " in line for line in lines) == 1
    assert not any("Masked: " in line for line in no_lines)
