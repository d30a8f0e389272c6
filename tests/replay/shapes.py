"""The run shapes whose histories are kept: each must replay on every later version."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from backstay.testing import Conversation, Reply
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import ROOT, Engine, pending, toolbox_of

Handle = WorkflowHandle[Any, Any]
READ = ("mail__list_customers", {"offset": 0, "limit": 1})
SEND = ("mail__send_email", {"to": "a@example.com", "subject": "s", "body": "b"})
OTHER = ("mail__send_email", {"to": "b@example.com", "subject": "s", "body": "b"})
PROGRAM = """
import asyncio
page = await mail.list_customers(offset=0, limit=1)
await asyncio.gather(*(mail.send_email(to=to, subject="s", body="b") for to in ("a@example.com", "b@example.com")))
return page["total"]
"""
FINISH = ("finish", {"summary": "done", "outputs": {"n": 1}})


def find(query: str) -> tuple[str, dict[str, Any]]:
    return ("search_tools", {"query": query})


def rules(talk: Conversation) -> Reply:
    """Play the shape that the task names; the step is the number of answers so far."""
    scripts: dict[str, list[list[tuple[str, dict[str, Any]]]]] = {
        "read": [[READ], [READ, READ], [FINISH]],
        "approve": [[SEND, OTHER], [FINISH]],
        "stop": [[SEND], [OTHER]],
        "budget": [[READ], [READ], [READ]],
        "program": [[("run_program", {"code": PROGRAM})], [FINISH]],
        "catalog": [[find("grow")], [("desk__grow", {})], [find("grown")], [("desk__grown", {})], [FINISH]],
        "elicitation": [[find("give a room away")], [("office__give_away", {"room": "cellar"})], [FINISH]],
        "undo": [[SEND], [("ask_person", {"question": "go on?"})], [FINISH]],
    }
    name = talk.task.partition("\n")[0]
    if not talk.tools:
        return Reply(text="closing words")
    said = sum(1 for message in talk.messages if message["role"] == "assistant")
    return Reply(calls=scripts[name][said])


async def decided(handle: Handle, verdict: str, **more: Any) -> None:
    (request,) = await pending(handle)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": verdict, "by": "ana", **more})


async def read(engine: Engine) -> Handle:
    return await engine.start({"text": "read"}, "golden-read")


async def approve(engine: Engine) -> Handle:
    handle = await engine.start({"text": "approve"}, "golden-approve")
    await decided(handle, "approve")
    return handle


async def stop(engine: Engine) -> Handle:
    handle = await engine.start({"text": "stop"}, "golden-stop")
    await decided(handle, "approve")
    await decided(handle, "reject", stop=True)
    return handle


async def budget(engine: Engine) -> Handle:
    return await engine.start({"text": "budget", "budget": {"max_steps": 2}}, "golden-budget")


async def plan(engine: Engine) -> Handle:
    steps = [
        {"tool": "mail.list_customers", "arguments": {"offset": 0, "limit": 1}},
        {"tool": "mail.send_email", "arguments": {"to": "${input.to}", "subject": "s", "body": "b"}},
        {"tool": "mail.recall_email", "arguments": {"message_id": "${steps.1.result.message_id}"}},
    ]
    task = {"input": {"to": "a@example.com"}, "plan": {"steps": steps}}
    handle = await engine.start(task, "golden-plan")
    await decided(handle, "approve")
    return handle


async def program(engine: Engine) -> Handle:
    handle = await engine.start({"text": "program"}, "golden-program")
    await decided(handle, "approve")
    return handle


async def undo(engine: Engine) -> Handle:
    handle = await engine.start({"text": "undo"}, "golden-undo")
    await decided(handle, "approve")
    await pending(handle)
    async with asyncio.timeout(30):
        while (await handle.query("pending"))[0]["kind"] != "question":
            await asyncio.sleep(0.1)
    await handle.execute_update("undo", {"to_step": None, "by": "ana"})
    await decided(handle, "answer", answer="yes")
    return handle


async def catalog(engine: Engine) -> Handle:
    return await engine.start({"text": "catalog"}, "golden-catalog")


async def elicitation(engine: Engine) -> Handle:
    handle = await engine.start({"text": "elicitation"}, "golden-elicitation")
    await decided(handle, "approve")
    async with asyncio.timeout(30):
        while [one["kind"] for one in await handle.query("pending")] != ["elicitation"]:
            await asyncio.sleep(0.1)
    await decided(handle, "answer", answer={"sure": True})
    return handle


def toolbox(folder: Path) -> Path:
    """Write a toolbox of the mailbox, a desk whose tools grow with the first call, and an office that asks."""
    desk = ScriptedServer(folder / "desk.json", [reads("grow")], later=[reads("grown")])
    desk.answers = {"grow": {"notify": True, "data": {}}, "grown": {"data": {"grown": True}}}
    servers = json.loads(toolbox_of_servers(folder, desk=desk).read_text(encoding="utf-8"))
    path = toolbox_of(folder, folder / "mailbox.db")
    data = json.loads(path.read_text(encoding="utf-8"))
    office = {"command": "python", "args": [str(ROOT / "tests/toolbox/servers/office.py"), "stdio"]}
    data["mcpServers"] |= servers["mcpServers"] | {"office": office}
    data["providers"] |= servers["providers"]
    del data["users"]
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


SHAPES: dict[str, Callable[[Engine], Awaitable[Handle]]] = {
    "read": read,
    "approve": approve,
    "stop": stop,
    "budget": budget,
    "plan": plan,
    "program": program,
    "undo": undo,
    "catalog": catalog,
    "elicitation": elicitation,
}
