"""The library forms: one call for one task, and the rooms behind an installed package."""

import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

import backstay
from backstay import Budget, execute_mcp_task
from backstay.client.connecting import DATA_CONVERTER
from backstay.errors import TaskInvalid
from backstay.testing import Reply
from tests.engine import Scripts, engine
from tests.requirements import promise

HOUSE = Path(__file__).resolve().parents[2]


def python(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "-c", program),
        cwd=folder,
        env={"PYTHONPATH": f"{folder}:{HOUSE}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@promise("clients:library")
async def test_one_call_carries_a_task_to_its_result(tmp_path, monkeypatch):
    scripts = Scripts()
    task = scripts.task(Reply(calls=[("mail__list_customers", {"limit": 1, "offset": n}) for n in range(25)]))
    binary = str(Path(sys.executable).parent / "temporal")
    # A server of its own: the queue's name is the one that programs use when nobody says otherwise.
    async with await WorkflowEnvironment.start_local(
        data_converter=DATA_CONVERTER, dev_server_existing_path=binary
    ) as own:
        monkeypatch.setenv("TEMPORAL_ADDRESS", own.client.service_client.config.target_host)
        async with engine(own.client, tmp_path, scripts, task_queue="backstay") as opened:
            result = await execute_mcp_task(task["text"], "someone", Budget(max_steps=4), {"tone": "kind"})

    assert (result.success, result.final_summary, result.error) == (True, "done", None)
    assert result.budget_usage["steps"] == 2
    assert result.budget.max_steps == 4
    # Temporal's history holds the last ones only.
    assert [event["n"] for event in result.logs] == [*range(1, result.events_total + 1)]
    assert (result.logs[0]["name"], result.events_total > 25) == ("run.started", True)
    assert "kind" in str(opened.model.requests[0]["messages"])
    assert "budget_usage" not in result.plain()


@promise("clients:library")
async def test_one_call_refuses_what_is_no_task():
    with pytest.raises(TaskInvalid, match=r"text: empty"):
        await execute_mcp_task("")


@promise("clients:library-rooms")
def test_every_exported_name_can_be_imported_and_nothing_else_is_offered():
    assert {name for name in backstay.__all__ if getattr(backstay, name, None) is None} == set()
    assert not hasattr(backstay, "nothing_of_this_name")


@promise("clients:nouns-light")
def test_a_program_that_uses_nouns_only_loads_no_temporal_client(tmp_path):
    done = python("import sys, backstay; backstay.Task; print('temporalio' in sys.modules)", tmp_path)

    assert (done.stdout, done.stderr) == ("False\n", "")


@promise("clients:library-rooms")
def test_the_library_finds_the_rooms_of_its_own_house(tmp_path):
    done = python("import backstay.library, toolbox; print(toolbox.search_tools.__name__, toolbox.__file__)", tmp_path)

    assert done.stdout == f"search_tools {HOUSE / 'toolbox' / '__init__.py'}\n", done.stderr


@promise("clients:library-rooms")
@pytest.mark.thorough
@pytest.mark.parametrize("room", ["toolbox", "sandbox"])
def test_the_library_refuses_a_foreign_room_that_was_imported_before(tmp_path, room):
    (tmp_path / f"{room}.py").write_text("", encoding="utf-8")

    done = python(f"import {room}, backstay.library", tmp_path)

    assert done.returncode == 1
    assert f"'{room}' was imported from {tmp_path / room}.py" in done.stderr


LIBRARY = "from backstay import execute_mcp_task"
STORE = """
import asyncio
from backstay.client.stored import stored_output
try:
    asyncio.run(stored_output('nobody', None, 'ref'))
except Exception as error:
    assert type(error).__name__ == 'RunNotFound', error
"""


@promise("clients:library-beside")
@pytest.mark.parametrize("used", [LIBRARY, STORE])
def test_a_program_that_uses_the_library_or_the_store_keeps_packages_named_as_folders_of_the_engine(tmp_path, used):
    for name in ("workflows", "people", "gateways", "worker"):
        (tmp_path / f"{name}.py").write_text(f"OWN = {name!r}", encoding="utf-8")

    done = python(f"{used}\nimport workflows, people, gateways, worker\nprint(workflows.OWN, worker.OWN)", tmp_path)

    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["workflows worker"]), done.stderr
