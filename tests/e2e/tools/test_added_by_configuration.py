"""A provider that only toolbox.json names is found, called, asked about, used by programs, undone and documented.

One is an MCP server of others, one a command-line tool that knows nothing of an engine.
"""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from backstay.testing import Reply
from tests.cli.commands import bare, forked
from tests.conformance.scenarios import NODE
from tests.docs.blocks import blocks
from tests.e2e.tools.test_foreign_servers import PACKAGES
from tests.engine import ended, engine, pending
from tests.requirements import promise
from tests.sizes import spread

POLICY = "default: {{read_only: allow, write_safe: ask, restricted_write: ask}}\ndeny: [{denied}]\n"


@dataclass(frozen=True)
class Added:
    """One provider, and how it is asked."""

    toolbox: dict[str, Any]
    wanted: str
    """What a task would say."""
    adds: tuple[str, dict[str, Any]]
    reads: tuple[str, dict[str, Any]]
    program: str
    denied: tuple[str, dict[str, Any]]
    made: Any
    """What adding answers."""
    page: str


def invoices(folder):
    """Configure the command-line tool of docs/tools-plugins.md over a book with many lines."""
    (plugin,) = [block for block in blocks("python") if block.noun == "plugin invoices"]
    (configuration,) = [block for block in blocks("json") if block.noun == "plugins"]
    place = folder / "plugins" / "invoices" / "cli.py"
    place.parent.mkdir(parents=True)
    place.write_text(plugin.text, encoding="utf-8")
    lines = [{"number": n, "customer": f"c{n}", "amount": n, "days": 90} for n in range(1, 201)]
    (folder / "book.json").write_text(json.dumps(lines), encoding="utf-8")
    return Added(
        toolbox=json.loads(configuration.text),
        wanted="add a new invoice",
        adds=("invoices__add", {"customer": "Ana", "amount": 12.5}),
        reads=("invoices__late", {"days": 30}),
        program='await invoices.add(customer="Bo", amount=1)\nreturn len((await invoices.late(days=30))["late"])',
        denied=("invoices__remove", {"number": 1}),
        made={"number": 201},
        page="- Undone: by remove",
    )


def memory(folder):
    """Configure a knowledge graph with many entities; it comes from npm."""
    entities = [
        {"type": "entity", "name": f"c{n}", "entityType": "customer", "observations": ["pays late"]} for n in range(200)
    ]
    (folder / "book.json").write_text("\n".join(map(json.dumps, entities)), encoding="utf-8")
    undo = {"tool": "delete_entities", "arguments": {"entityNames": ["{{ arguments.entities[0].name }}"]}}
    tools = {"create_entities": {"safety": "write_safe", "undo": undo}, "read_graph": {"safety": "read_only"}}
    script = PACKAGES / "server-memory" / "dist" / "index.js"
    server = {"command": str(NODE), "args": [str(script)], "env": {"MEMORY_FILE_PATH": "${BOOK}"}}
    entity = {"entityType": "customer", "observations": []}
    return Added(
        toolbox={"mcpServers": {"memory": server}, "providers": {"memory": {"tools": tools}}},
        wanted="create entities in the knowledge graph",
        adds=("memory__create_entities", {"entities": [{"name": "Ana", **entity}]}),
        reads=("memory__read_graph", {}),
        program=(
            f'await memory.create_entities(entities=[{{"name": "Bo", **{entity}}}])\n'
            'return len((await memory.read_graph())["entities"])'
        ),
        denied=("memory__delete_entities", {"entityNames": ["c1"]}),
        made={"entities": [{"name": "Ana", **entity}]},
        page="- Undone: by delete\\_entities",
    )


def walk(added):
    """Return a model that searches, tries what is denied, adds, reads, and lets a program do both."""
    steps = [
        ("search_tools", {"query": added.wanted, "limit": 3}),
        added.denied,
        added.adds,
        added.reads,
        ("run_program", {"code": added.program}),
    ]

    def rules(talk):
        if "finish" not in talk.tools:
            return Reply(text="stopped")
        said = sum(1 for message in talk.messages if message["role"] == "assistant")
        if said < len(steps):
            return Reply(calls=[steps[said]])
        answers = [json.loads(message["content"]) for message in talk.messages if message["role"] == "tool"]
        return Reply(calls=[("finish", {"summary": "done", "outputs": {"answers": answers}})])

    return rules


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


async def approve_all(handle, count):
    """Approve so many requests one after the other and return the calls they showed."""
    calls = []
    for _ in range(count):
        (request,) = await pending(handle)
        calls += request["calls"]
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    return calls


@promise("tools:configured")
@pytest.mark.parametrize("configure", spread([invoices, memory], 1))
async def test_what_only_the_configuration_names_is_a_tool_in_every_respect(
    temporal, sandbox, nursery, tmp_path, monkeypatch, configure
):
    added = configure(tmp_path)
    toolbox, book = tmp_path / "toolbox.json", tmp_path / "book.json"
    toolbox.write_text(json.dumps(added.toolbox), encoding="utf-8")
    monkeypatch.setenv("BOOK", str(book))
    policy = POLICY.format(denied=added.denied[0].replace("__", "."))
    before = book.read_text(encoding="utf-8")
    options = {"policy": policy, "toolbox": toolbox, "sandbox": sandbox}
    async with engine(temporal, tmp_path, walk(added), request_deadline_seconds=30, **options) as opened:
        handle = await opened.start({"text": "keep the customers"})
        asked = await approve_all(handle, 2)
        result = await ended(handle)
        kept = book.read_text(encoding="utf-8")
        undoing = await opened.client.start_workflow(
            "UndoRun", {"workflow_id": handle.id}, id=f"undo-{handle.id}", task_queue=opened.settings.task_queue
        )
        undone = await ended(undoing)
        own = {"BACKSTAY_HOME": str(tmp_path / "home"), "BACKSTAY_TRUSTED": str(tmp_path)}
        environment = bare(**own, BACKSTAY_TOOLBOX=str(toolbox), BOOK=str(book))
        documented = await forked(nursery, "tools", "docs", environment=environment, folder=tmp_path)

    found, refused, made, read, ran = result["raw_outputs"]["answers"]
    name = added.adds[0].replace("__", ".")
    assert result["outcome"] == "completed", result
    assert name in json.dumps(found)
    assert refused["type"] == "Denied"
    assert made == added.made
    assert (read["truncated"], bool(read["storage_ref"])) == (True, True)
    assert ran["data"]["result"] >= 200
    assert [(call["tool"], call["undo_how"] is not None) for call in asked] == [(name, True)] * 2
    assert [(effect["tool"], effect["state"]) for effect in result["effects"]] == [(name, "applied")] * 2
    assert "Ana" in kept
    assert undone["outcome"] == "rolled_back"
    assert lines_of(book.read_text(encoding="utf-8")) == lines_of(before) != lines_of(kept)
    assert (documented.code, added.page in documented.out) == (0, True)
