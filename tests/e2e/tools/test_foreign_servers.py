"""Servers that others wrote, installed from their packages: calls are ruled, recorded and, where declared, undone."""

import asyncio
import http.server
import json
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.conformance.scenarios import NODE, ROOT
from tests.e2e.labelled import DONE, Labelled
from tests.engine import assert_no_task_failure, ended, engine, pending
from tests.requirements import promise
from tests.sizes import spread

PACKAGES = ROOT / "build/node/node_modules/@modelcontextprotocol"
PLACE = "{{ arguments.repo_path }}"
PROVIDERS = {
    "git": {
        "tools": {
            "git_status": {"safety": "read_only"},
            "git_add": {"safety": "write_safe", "undo": {"tool": "git_reset", "arguments": {"repo_path": PLACE}}},
        }
    },
    "time": {"trusted": True},
    "fetch": {"tools": {"fetch": {"safety": "read_only"}}},
    "files": {
        "tools": {
            "write_file": {
                "safety": "write_safe",
                "undo": {
                    "tool": "move_file",
                    "arguments": {
                        "source": "{{ arguments.path }}",
                        "destination": "{{ arguments.path }}.undone",
                    },
                },
            }
        }
    },
    "memory": {
        "tools": {
            "create_entities": {
                "safety": "write_safe",
                "undo": {
                    "tool": "delete_entities",
                    "arguments": {"entityNames": ["{{ arguments.entities[0].name }}"]},
                },
            },
            "read_graph": {"safety": "read_only"},
        }
    },
    "everything": {"trusted": True},
}
ANA = {"name": "Ana", "entityType": "person", "observations": ["has a key"]}
SCRIPTS = Labelled(
    undoing=[
        Reply(calls=[("search_tools", {"query": "remember a new entity in the knowledge graph"})]),
        Reply(
            calls=[("memory__create_entities", {"entities": [{"name": "Ana", "entityType": "p", "observations": []}]})]
        ),
        DONE,
    ]
)


@contextmanager
def page():
    """Serve one page on loopback."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<html><body><h1>Opening hours</h1><p>Nine to five.</p></body></html>")

        def log_message(self, *_):
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hours"
    finally:
        server.shutdown()
        server.server_close()


def repository(folder):
    folder.mkdir()
    identity = ["-c", "user.name=Ana", "-c", "user.email=ana@example.com"]
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "begin"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    (folder / "new.txt").write_text("new", encoding="utf-8")
    return folder


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign")
    files = folder / "files"
    files.mkdir()

    def module(name, *arguments):
        return {"command": sys.executable, "args": ["-m", name, *arguments]}

    def package(name, *arguments, **env):
        script = PACKAGES / f"server-{name}" / "dist" / "index.js"
        return {"command": str(NODE), "args": [str(script), *arguments], "env": env}

    servers = {
        "git": module("mcp_server_git"),
        "time": module("mcp_server_time", "--local-timezone", "Europe/Paris"),
        "fetch": module("mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips"),
        "files": package("filesystem", str(files)),
        "memory": package("memory", MEMORY_FILE_PATH=str(folder / "memory.jsonl")),
        "everything": package("everything"),
    }
    toolbox = folder / "toolbox.json"
    toolbox.write_text(json.dumps({"mcpServers": servers, "providers": PROVIDERS}), encoding="utf-8")
    policy = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\ndeny: [git.git_commit]\n"
    more = {"policy": policy, "toolbox": toolbox, "request_deadline_seconds": 30}
    async with engine(temporal, folder, SCRIPTS, **more) as found:
        yield found, folder, repository(folder / "repository")


async def performed(opened, *steps):
    """Perform a plan, say yes to what is asked, and return the result and what each step returned."""
    found, _, _ = opened
    handle = await found.start({"plan": {"steps": [{"tool": tool, "arguments": given} for tool, given in steps]}})
    asked = []
    finishing = asyncio.create_task(handle.result())
    while not finishing.done():
        for request in await handle.query("pending"):
            asked.append(request)
            await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        await asyncio.wait({finishing}, timeout=0.2)
    assert_no_task_failure(await handle.fetch_history())
    return handle, finishing.result(), asked


async def undone(opened, handle):
    found, _, _ = opened
    undoing = await found.client.start_workflow(
        "UndoRun", {"workflow_id": handle.id}, id=f"undo-{handle.id}", task_queue=found.settings.task_queue
    )
    return await ended(undoing)


def staged(repository):
    command = ["git", "diff", "--cached", "--name-only"]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True).stdout.split()


@promise("tools:foreign")
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("tool", "arguments"),
    spread(
        [
            ("time.get_current_time", {"timezone": "UTC"}),
            ("time.convert_time", {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}),
            ("everything.echo", {"message": "hello"}),
            ("everything.get-sum", {"a": 2, "b": 3}),
        ],
        2,
    ),
)
async def test_calls_that_their_trusted_server_calls_harmless_are_made_without_a_question(opened, tool, arguments):
    _, result, asked = await performed(opened, (tool, arguments))
    assert (result["outcome"], asked, result["effects"]) == ("completed", [], [])


@promise("tools:foreign")
@pytest.mark.thorough
async def test_a_page_on_loopback_is_fetched(opened):
    with page() as address:
        _, result, _ = await performed(opened, ("fetch.fetch", {"url": address}))
    assert result["outcome"] == "completed"


@promise("tools:foreign")
@pytest.mark.thorough
async def test_what_was_staged_with_git_is_asked_about_recorded_and_undone(opened):
    _, _, repository = opened
    given = {"repo_path": str(repository)}
    steps = (("git.git_status", given), ("git.git_add", {**given, "files": ["new.txt"]}))
    handle, result, asked = await performed(opened, *steps)
    assert [call["tool"] for request in asked for call in request["calls"]] == ["git.git_add"]
    assert [(effect["tool"], effect["state"]) for effect in result["effects"]] == [("git.git_add", "applied")]
    assert staged(repository) == ["new.txt"]
    assert (await undone(opened, handle))["outcome"] == "rolled_back"
    assert staged(repository) == []


@promise("tools:foreign")
async def test_a_file_that_was_written_is_moved_away_again(opened):
    _, folder, _ = opened
    path = folder / "files" / "note.txt"
    handle, result, asked = await performed(opened, ("files.write_file", {"path": str(path), "content": "words"}))
    assert result["outcome"] == "completed", result["error"]
    assert (len(asked), path.read_text(encoding="utf-8")) == (1, "words")
    assert [effect["state"] for effect in result["effects"]] == ["applied"]
    assert (await undone(opened, handle))["outcome"] == "rolled_back"
    assert not path.exists()


@promise("tools:foreign")
@pytest.mark.thorough
async def test_a_model_finds_a_tool_of_memory_and_what_it_remembered_is_forgotten_on_undo(opened):
    found, folder, _ = opened
    handle = await found.start({"text": "<undoing>"})
    (request,) = await pending(handle)
    assert request["calls"][0]["undo_how"] is not None
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    assert (await ended(handle))["outcome"] == "completed"
    assert "Ana" in (folder / "memory.jsonl").read_text(encoding="utf-8")
    assert (await undone(opened, handle))["outcome"] == "rolled_back"
    assert "Ana" not in (folder / "memory.jsonl").read_text(encoding="utf-8")


@promise("tools:foreign")
@pytest.mark.thorough
async def test_what_the_policy_denies_is_not_called(opened):
    _, _, repository = opened
    _, result, asked = await performed(opened, ("git.git_commit", {"repo_path": str(repository), "message": "m"}))
    assert (result["outcome"], asked, result["effects"]) == ("failed", [], [])
