"""docs/mail-and-chat.md: its workflows over servers of the shapes of Gmail and Slack, with a real worker."""

import json
import shlex
import shutil
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import yaml

from examples.office import gmail, slack
from examples.office.book import Book
from examples.office.inbox import QUESTION, inbox
from examples.office.script import LETTER, next_reply
from tests.cli.commands import environment_of, forked
from tests.docs.blocks import HOUSE, blocks
from tests.engine import ended, engine, pending
from tests.requirements import promise
from tests.serving import served
from tests.sizes import spread
from toolbox.configuration.load import load

OFFICE = HOUSE / "examples/office"
DYING = HOUSE / "tests/examples/dying.py"
SECRET = "sk-live-51HxQ2eTz8Kd03LmVw94RbYc"
ANSWER = "Answer the question about invoice 2041 in our mailbox, and tell #billing."
COUNT = "Count the unread mails by sender, and post the list in #support."
PAGE = "docs/mail-and-chat.md"


def toolbox_in(folder, *, dying=(), addresses=None):
    """Write the example's toolbox with this interpreter and with files in this folder, or with these addresses."""
    text = (OFFICE / "toolbox.json").read_text(encoding="utf-8")
    for name in ("gmail", "slack"):
        args = [str(DYING), name] if name in dying else [str(OFFICE / f"{name}.py")]
        entry = {"command": sys.executable, "args": args, "env": {f"{name.upper()}_FILE": str(folder / f"{name}.json")}}
        if addresses:
            entry = {"type": "http", "url": f"{addresses[name]}/mcp"}
        written = f'{{"command": "python", "args": ["{name}.py"]}}'
        assert written in text
        text = text.replace(written, json.dumps(entry))
    path = folder / "toolbox.json"
    path.write_text(text, encoding="utf-8")
    return path


@asynccontextmanager
async def office(temporal, folder, toolbox=None, **more):
    """Open a worker over both services; without a toolbox they are in this process, which saves two starts."""
    policy = (OFFICE / "policy.yaml").read_text(encoding="utf-8")
    async with AsyncExitStack() as stack:
        toolbox = toolbox or await toolbox_here(folder, stack)
        made = engine(temporal, folder, next_reply, toolbox=toolbox, policy=policy, **more)
        yield await stack.enter_async_context(made)


async def toolbox_here(folder, stack):
    """Serve both over HTTP, and return a toolbox that leads there."""
    addresses = {}
    for name, service in (("gmail", gmail), ("slack", slack)):
        app = service.server(Book(folder / f"{name}.json")).streamable_http_app()
        addresses[name] = await stack.enter_async_context(served(app))
    return toolbox_in(folder, addresses=addresses)


def book(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def sent(folder):
    return [mail for mail in book(folder, "gmail")["messages"] if mail["labelIds"] == ["SENT"]]


def question(folder):
    (mail,) = [mail for mail in book(folder, "gmail")["messages"] if mail["messageText"] == QUESTION]
    return mail


def posted(folder):
    return [(message["channel"], message["text"]) for message in book(folder, "slack")["messages"]]


async def decided(opened, handle, **decision):
    (request,) = await pending(handle)
    await handle.execute_update("decide", {"request_id": request["id"], "by": "ana@ours.example", **decision})
    return request


async def undone(opened, handle):
    undo = await opened.client.start_workflow(
        "UndoRun", {"workflow_id": handle.id}, id=f"undo-{handle.id}", task_queue=opened.settings.task_queue
    )
    return await ended(undo)


@promise("demo:answer")
async def test_a_mail_is_answered_and_a_channel_told_after_one_approval_and_both_are_undone(temporal, tmp_path):
    async with office(temporal, tmp_path) as opened:
        handle = await opened.start({"text": ANSWER, "user_id": "ana", "session_id": "desk"})
        request = await decided(opened, handle, verdict="approve")
        # The draft was written without a question; nothing has left the house.
        assert [call["tool"] for call in request["calls"]] == ["gmail.GMAIL_SEND_DRAFT", "slack.SLACK_SEND_MESSAGE"]
        assert [call["undoable"] for call in request["calls"]] == [False, True]
        assert request["calls"][1]["undo_how"].startswith("SLACK_DELETES_A_MESSAGE_FROM_A_CHAT(")
        result = await ended(handle)
        told = json.dumps(opened.model.requests)
        (mail,), where = sent(tmp_path), posted(tmp_path)
        assert question(tmp_path)["labelIds"] == ["INBOX"]
        back = await undone(opened, handle)

    assert result["outcome"] == "completed"
    assert (mail["to"], mail["subject"], mail["messageText"]) == ("ana@acme.example", "Re: Invoice 2041", LETTER)
    assert where == [("C02BILLING", "Answered ana@acme.example about Invoice 2041: 60 days.")]
    assert SECRET in question(tmp_path)["messageText"]
    assert SECRET not in told + json.dumps([result, back])
    events = result["events"]
    assert {event["mcp_name"] for event in events} >= {"mcp.search.run", "mcp.action.called"}
    assert {(event["task_id"], event["user_id"], event["session_id"]) for event in events} == {
        (handle.id, "ana", "desk")
    }
    # The mail stands, since no service takes one back; all else is as it was.
    states = [(effect["tool"].partition(".")[2], effect["state"]) for effect in back["undone"]]
    assert states == [
        ("GMAIL_ADD_LABEL_TO_EMAIL", "compensated"),
        ("SLACK_SEND_MESSAGE", "compensated"),
        ("GMAIL_SEND_DRAFT", "kept"),
        ("GMAIL_CREATE_EMAIL_DRAFT", "compensated"),
    ]
    assert (back["outcome"], posted(tmp_path), len(sent(tmp_path))) == ("rolled_back", [], 1)
    assert question(tmp_path)["labelIds"] == ["INBOX", "UNREAD"]


@promise("demo:rejected")
async def test_what_a_person_rejects_is_not_sent_and_the_draft_is_undone(temporal, tmp_path):
    async with office(temporal, tmp_path) as opened:
        handle = await opened.start({"text": ANSWER})
        await decided(opened, handle, verdict="reject", comment="not today", stop=True)
        result = await ended(handle)

    assert result["outcome"] == "rolled_back"
    assert (sent(tmp_path), posted(tmp_path), book(tmp_path, "gmail")["drafts"]) == ([], [], [])
    # What was found until then is there.
    assert [step["tool"] for step in result["raw_outputs"]["steps"]][-1] == "gmail.GMAIL_CREATE_EMAIL_DRAFT"


@promise("demo:answer")
@pytest.mark.thorough
@pytest.mark.parametrize("service", spread(["gmail", "slack"], 1))
async def test_a_service_that_dies_after_it_has_sent_sends_once_and_nobody_is_asked(temporal, tmp_path, service):
    async with office(temporal, tmp_path, toolbox_in(tmp_path, dying=(service,))) as opened:
        handle = await opened.start({"text": ANSWER})
        await decided(opened, handle, verdict="approve")
        result = await ended(handle)
        back = await undone(opened, handle)

    assert (tmp_path / f"{service}.died").exists()
    assert result["outcome"] == "completed", result["error"]
    assert len(sent(tmp_path)) == 1
    names = [event["name"] for event in result["events"]]
    assert ("effect.unknown" in names, names.count("approval.asked")) == (True, 1)
    # A post whose answer was lost is undone by what the channel says of it.
    assert (back["outcome"], posted(tmp_path)) == ("rolled_back", [])


@promise("demo:program")
async def test_unread_mails_are_counted_in_a_program_that_reads_page_after_page(temporal, tmp_path, sandbox):
    async with office(temporal, tmp_path, sandbox=sandbox) as opened:
        handle = await opened.start({"text": COUNT})
        request = await decided(opened, handle, verdict="approve")
        result = await ended(handle)
        told = json.dumps(opened.model.requests)

    unread = [mail["sender"] for mail in inbox() if "UNREAD" in mail["labelIds"]]
    assert result["outcome"] == "completed", result["error"]
    assert result["raw_outputs"]["total"] == len(unread) > 20
    assert result["raw_outputs"]["by_sender"] == {sender: unread.count(sender) for sender in set(unread)}
    ((channel, text),) = posted(tmp_path)
    assert channel == "C03SUPPORT"
    assert all(f"{sender}: {unread.count(sender)}" in text for sender in set(unread))
    assert [call["tool"] for call in request["calls"]] == ["slack.SLACK_SEND_MESSAGE"]
    # No mail reached the model, and neither did the token of a page.
    assert not [word for word in ("Best wishes", "page-token", SECRET) if word in told]
    assert result["usage"]["code_runs"] == 1
    assert "mcp.sandbox.run" in {event["mcp_name"] for event in result["events"]}


@promise("demo:budget")
async def test_a_budget_ends_the_work_with_what_was_found_and_a_summary(temporal, tmp_path):
    async with office(temporal, tmp_path) as opened:
        result = await ended(await opened.start({"text": ANSWER, "budget": {"max_steps": 2}}))

    assert (result["outcome"], result["success"]) == ("budget_exceeded", False)
    assert result["error"]["message"].startswith("budget exceeded: ")
    assert "I found the mail and had to stop before the answer." in result["final_summary"]
    tools = [step["tool"] for step in result["raw_outputs"]["steps"]]
    assert sorted(tools[:2]) == ["gmail.GMAIL_FETCH_EMAILS", "slack.SLACK_LIST_ALL_CHANNELS"]
    names = {event["mcp_name"] for event in result["events"]}
    assert names >= {"mcp.budget.exceeded", "mcp.summary.created"}


@promise("demo:failed-read")
async def test_a_failed_read_is_told_as_failed_with_the_reason_of_the_service(temporal, tmp_path):
    steps = [{"tool": "gmail.GMAIL_FETCH_MESSAGE_BY_MESSAGE_ID", "arguments": {"message_id": "nobody"}}]
    async with office(temporal, tmp_path) as opened:
        result = await ended(await opened.start({"plan": {"steps": steps}}))

    (failed,) = [event for event in result["events"] if event["name"].startswith("action.")]
    assert failed["name"] == "action.failed"
    assert "Requested entity was not found." in failed["text"]
    assert result["raw_outputs"]["steps"][0]["success"] is False


@promise("demo:answer")
def test_the_declarations_name_only_tools_and_arguments_that_the_services_have(tmp_path):
    configuration, _ = load(toolbox_in(tmp_path), {})
    assert set(configuration.servers) == set(configuration.providers) == {"gmail", "slack"}
    policy = yaml.safe_load((OFFICE / "policy.yaml").read_text(encoding="utf-8"))
    assert policy["default"] == {"read_only": "allow", "write_safe": "ask", "restricted_write": "ask"}


@promise("demo:answer")
@pytest.mark.thorough
async def test_the_commands_of_the_page_do_what_it_says(temporal, tmp_path, nursery, sandbox):
    lines = [line for block in blocks("bash") if block.place.startswith(PAGE) for line in block.text.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("backstay ")]
    shutil.copytree(OFFICE, tmp_path / "examples/office")
    seen = {}
    async with office(temporal, tmp_path, toolbox_in(tmp_path), sandbox=sandbox, cached=100) as opened:
        for _, command, *arguments in commands:
            if command not in {"trust", "dev"}:
                yes = ["--yes"] if command == "run" else []
                environment = environment_of(opened)
                done = await forked(nursery, command, *arguments, *yes, environment=environment, folder=tmp_path)
                assert done.code == 0, (command, done.err)
                seen.setdefault(command, []).append(done)

    answered, counted, planned = seen["run"]
    assert answered.out.startswith("Answered ana@acme.example and told #billing.\n")
    assert counted.out.startswith("41 mails are unread; #support has the list.\n")
    assert planned.out.startswith("3 of 3 steps of the plan done\n")
    (chat,) = [json.loads(line) for line in (tmp_path / "chat.jsonl").read_text(encoding="utf-8").splitlines()][:1]
    assert chat["role"] == "system"
    assert "CANNOT BE UNDONE" in seen["undo"][0].out
