"""What the shapes share: the calls of their models, the decisions of their people, and the engine they run in."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError

from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import ROOT, Engine, toolbox_of

Handle = WorkflowHandle[Any, Any]
Call = tuple[str, dict[str, Any]]
Script = list[list[Call]]
"""The calls of a model, step by step."""
Play = Callable[[Engine], Awaitable[Handle]]
KEY = "the key that workers and gateways share"
POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow: ["bank.*"]
ask: [{tool: mail.send_email, when: {to: {equals: late@example.com}}, timeout: 2s, on_expiry: escalate}]
undo: {default: allow}
repeated: allow
"""
READ = ("mail__list_customers", {"offset": 0, "limit": 1})
SEND = ("mail__send_email", {"to": "a@example.com", "subject": "s", "body": "b"})
FINISH = ("finish", {"summary": "done", "outputs": {"n": 1}})
GIVE_UP = ("finish", {"summary": "I cannot", "outputs": {}, "success": False})
OPEN = "bank.open"
"""The file that lets the bank answer what it was asked to hold back."""
LOST = {"die": True}
PAID = {"data": {"id": "p1"}}
BANK: dict[str, Any] = {
    "pay": PAID,
    "pay_at_last": {"until": OPEN, **PAID},
    "pay_checked": LOST,
    "pay_unheard": {"hang": True},
    "pay_again": [LOST, PAID],
    "pay_proven": [LOST, PAID],
    "pay_blindly": LOST,
    "pay_for_good": PAID,
    "pay_doubtfully": {"data": {"error": "File exists"}},
    "pay_back": PAID,
    "pay_back_at_last": PAID,
    "reclaim": {"data": {"id": "p1", "reclaimed": True}},
    "reclaim_blindly": LOST,
    "reclaim_checked": LOST,
    "reclaim_proven": [LOST, PAID],
    "find": {"data": {"payments": [{"id": "p1"}]}},
    "find_none": {"data": {"payments": []}},
}
"""What the tools of the bank answer; several of them take the money and lose the answer."""


def find(query: str) -> Call:
    return ("search_tools", {"query": query})


def pay(tool: str = "pay") -> Call:
    return (f"bank__{tool}", {})


async def requested(handle: Handle, kind: str = "") -> dict[str, Any]:
    """Wait for the one open request, of this kind where it is named."""
    async with asyncio.timeout(150):
        while len(requests := await handle.query("pending")) != 1 or kind not in {"", requests[0]["kind"]}:
            await asyncio.sleep(0.1)
    return requests[0]


async def decided(handle: Handle, verdict: str, kind: str = "", **more: Any) -> None:
    """Wait for the one open request, of this kind where it is named, and decide it."""
    request = await requested(handle, kind)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": verdict, "by": "ana", **more})


async def switched(handle: Handle) -> None:
    """Wait until a run has continued as a new execution."""
    async with asyncio.timeout(150):
        while (await handle.describe()).run_id == handle.first_execution_run_id:
            await asyncio.sleep(0.1)


async def called(engine: Engine, tool: str) -> None:
    """Wait until the bank was asked for this."""
    bank = ScriptedServer(folder_of(engine) / "bank.json", [])
    async with asyncio.timeout(150):
        while not await asyncio.to_thread(bank.calls, tool):
            await asyncio.sleep(0.1)


async def ended(handle: Handle) -> None:
    """Wait for the end of a run; one that was cancelled has no result."""
    async with asyncio.timeout(150):
        try:
            await handle.result()
        except WorkflowFailureError as failure:
            if not isinstance(failure.cause, CancelledError):
                raise


def options(folder: Path) -> dict[str, Any]:
    """Return how an engine is opened in which every shape can be played."""
    return {"toolbox": toolbox(folder), "policy": POLICY, "approver_key": KEY, "request_deadline_seconds": 5}


def folder_of(engine: Engine) -> Path:
    """Return where the scripts of the servers stand."""
    return engine.settings.toolbox.parent


def toolbox(folder: Path) -> Path:
    """Write a toolbox of a mailbox, a desk whose tools grow with the first call, an office that asks, and a bank."""
    desk = ScriptedServer(folder / "desk.json", [reads("grow")], later=[reads("grown")])
    desk.answers = {"grow": {"notify": True, "data": {}}, "grown": {"data": {"grown": True}}}
    servers = json.loads(toolbox_of_servers(folder, desk=desk, bank=_bank(folder)).read_text(encoding="utf-8"))
    path = toolbox_of(folder, folder / "mailbox.db")
    data = json.loads(path.read_text(encoding="utf-8"))
    office = {"command": "python", "args": [str(ROOT / "tests/toolbox/servers/office.py"), "stdio"]}
    data["mcpServers"] |= servers["mcpServers"] | {"office": office}
    data["providers"] |= servers["providers"]
    del data["users"]
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def _bank(folder: Path) -> ScriptedServer:
    """Return a bank that starts anew: what it counted of earlier calls is forgotten."""
    with suppress(FileNotFoundError):
        (folder / "bank.calls").unlink()
    reclaimed = {"undo": {"tool": "reclaim", "arguments": {"id": "{{ result.id }}"}}}
    checked = {"verify": _check("find")}
    declared = {
        "pay": reclaimed,
        "pay_at_last": reclaimed,
        "pay_checked": reclaimed | checked,
        "pay_doubtfully": reclaimed | checked,
        "pay_unheard": reclaimed | checked,
        "pay_again": reclaimed | {"verify": _check("find_none")},
        "pay_proven": reclaimed | {"verify": _check("find_none") | {"verify_is_final": True}},
        "pay_for_good": {"undo": {"tool": "reclaim_blindly", "arguments": {"id": "{{ result.id }}"}}},
        "pay_back": {"undo": {"tool": "reclaim_checked", "arguments": {"id": "{{ result.id }}"}}},
        "pay_back_at_last": {"undo": {"tool": "reclaim_proven", "arguments": {"id": "{{ result.id }}"}}},
        "reclaim_checked": checked,
        "reclaim_proven": {"verify": _check("find_none") | {"verify_is_final": True}},
    }
    tools = [(reads if name.startswith("find") else writes)(name) for name in BANK]
    return ScriptedServer(folder / "bank.json", tools, BANK, declared)


def _check(tool: str) -> dict[str, Any]:
    found = "{{ result.payments | length > 0 }}"
    arguments = {"id": "{{ effect.id }}"}
    return {"tool": tool, "arguments": arguments, "applied_if": found, "result": "{{ result.payments[0] }}"}
