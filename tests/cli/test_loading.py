"""What a command loads: what it says of itself first, and nothing of what other commands need."""

import asyncio
import importlib
import inspect
import io
import re
import sys

import pytest
from cyclopts import App
from rich.console import Console

from gateways.terminal.app import TABLE, build
from store.opening import open_store
from tests.cli.commands import bare, command, environment_of
from tests.requirements import promise

GROUPS = {"": TABLE["commands"], **{name: group["commands"] for name, group in TABLE["groups"].items()}}
COMMANDS = {
    f"{group} {name}".strip(): (place, about) for group, rows in GROUPS.items() for name, (place, about) in rows.items()
}
HEAVY = {
    *("aiohttp", "aiosqlite", "alembic", "asyncpg", "genai_prices", "httpx2", "jinja2", "jsonschema", "mcp", "numpy"),
    *("openai", "opentelemetry", "prompt_toolkit", "pydantic_ai", "re2", "slack_bolt", "slack_sdk"),
    *("sqlalchemy", "starlette", "structlog", "uvicorn", "wordllama"),
}
"""Libraries of which a command that only asks Temporal needs none."""


def loaded_by(done):
    """Return the modules that a process has loaded which was told to say so."""
    return {line.rpartition("|")[2].strip() for line in done.err.splitlines() if line.startswith("import time:")}


@promise("clients:command-list")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_a_command_says_of_itself(name):
    place, about = COMMANDS[name]
    module, _, function = place.partition(":")
    command = getattr(importlib.import_module(f"gateways.terminal.{module}"), function)

    if isinstance(command, App):
        assert command.name == (name,)
    else:
        first, *_ = (inspect.getdoc(command) or "").split("\n\n")
        assert " ".join(first.split()) == about


@promise("clients:help")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_says_what_each_of_its_arguments_is(name):
    words, shown = name.split(), io.StringIO()

    build(words).help_print(words, console=Console(file=shown, width=500))

    rows = [line.strip("│ ") for line in shown.getvalue().splitlines() if line.startswith("│")]
    named = [row for row in rows if row.removeprefix("*").strip().split(" ")[0].strip("-").isupper() or "--" in row]
    alone = re.compile(r"\S+( \S+)*( {2,}\[(required|default|choices)[^]]*\])*")
    assert [row for row in named if alone.fullmatch(row.removeprefix("*").strip())] == []
    assert "----" not in shown.getvalue()


@promise("clients:light-help")
@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("plan", "--help")])
async def test_help_loads_no_command_and_no_client(tmp_path, arguments):
    done = await command(*arguments, environment=bare(PYTHONPROFILEIMPORTTIME="1"), folder=tmp_path)

    loaded, files = loaded_by(done), {place.partition(":")[0] for place, _ in COMMANDS.values()}
    assert done.code == 0
    assert "gateways.terminal.app" in loaded
    assert not loaded & {*HEAVY, "temporalio", "pydantic_settings", *(f"gateways.terminal.{file}" for file in files)}


# The command itself becomes another program.
FOUND = """
import sys
from gateways.terminal.app import build
words = ["worker", "--role", "sandbox"]
build(words).parse_args(words)
print(*sys.modules)
"""


@promise("clients:light-worker")
async def test_a_command_that_becomes_the_worker_loads_nothing_on_its_way(tmp_path):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", FOUND), env=bare(), cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), 150)

    loaded = set(out.decode().split())
    assert process.returncode == 0
    assert "gateways.terminal.worker" in loaded
    assert not loaded & {*HEAVY, "backstay.settings", "pydantic_settings", "temporalio"}


@promise("clients:light-list")
@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [("show", "nothing"), ("result", "nothing"), ("approve", "nothing", "r1"), ("reject", "nothing", "r1")],
    ids=lambda arguments: arguments[0],
)
async def test_a_command_that_asks_temporal_loads_nothing_of_the_engine(opened, tmp_path, arguments):
    environment = environment_of(opened, PYTHONPROFILEIMPORTTIME="1", BACKSTAY_HOME=str(tmp_path / "none"))
    done = await command(*arguments, environment=environment, folder=tmp_path)

    assert "there is no run nothing" in done.err
    assert "temporalio.client" in loaded_by(done)
    assert not loaded_by(done) & {*HEAVY, "pygments", "backstay.calls", "backstay.logs"}


@promise("clients:light-list")
async def test_a_list_loads_nothing_of_what_a_run_is_made_of(opened, tmp_path):
    environment = environment_of(opened, PYTHONPROFILEIMPORTTIME="1", BACKSTAY_HOME=str(tmp_path / "none"))
    done = await command("list", "--output", "json", environment=environment, folder=tmp_path)

    assert (done.code, done.out[:1]) == (0, "[")
    assert "temporalio.client" in loaded_by(done)
    parts = {"backstay.approvals", "backstay.client.run", "backstay.policies", "backstay.task", "rich"}
    assert not loaded_by(done) & {*HEAVY, *parts}


OPENED = """
import asyncio, sys
from pathlib import Path
from opening import open_endpoints, open_store, open_toolbox
from backstay.settings import Settings

async def main():
    for home in ("used", "new"):
        settings = Settings.load(None, home=Path(home))
        async with open_store(settings), open_toolbox(settings), open_endpoints(settings) as endpoints:
            assert endpoints.names == [settings.model]
            print("loaded", *sys.modules)

asyncio.run(main())
"""


@promise("store:light")
async def test_what_a_worker_opens_loads_no_library_that_it_has_not_used_yet(tmp_path):
    async with open_store(database_url=None, home=tmp_path / "used"):
        pass
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OPENED), env=bare(), cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), 150)

    # The opened store says so in lines of its own.
    used, new = [set(line.split()) for line in out.decode().splitlines() if line.startswith("loaded ")]
    assert "alembic" in new
    assert {"sqlalchemy", "toolbox.toolbox"} <= used
    unused = {"mako", "mcp", "openai", "sqlalchemy.orm", "temporalio.worker", "toolbox.manifest"}
    assert "activities.endpoints.endpoints" in used
    assert not used & {"alembic", *unused}
