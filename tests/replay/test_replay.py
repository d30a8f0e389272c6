from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import NondeterminismError

import workflows
from backstay.calls import DATA_CONVERTER
from tests.engine import assert_no_task_failure
from tests.replay.shapes import SHAPES, rules, toolbox
from workflows import asking, run_task
from workflows.tool_calls import ToolCalls

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))


def history_of(path):
    return WorkflowHistory.from_json(path.stem, path.read_text(encoding="utf-8"))


def replayer(*, sandboxed):
    restrictions = SandboxRestrictions.default.with_passthrough_modules("backstay", "pydantic_core", "annotated_types")
    runner = SandboxedWorkflowRunner(restrictions=restrictions) if sandboxed else UnsandboxedWorkflowRunner()
    return Replayer(workflows=workflows.WORKFLOWS, data_converter=DATA_CONVERTER, workflow_runner=runner)


def test_a_history_of_every_shape_is_kept():
    kept = {path.stem.partition("-")[2] for path in HISTORIES}

    assert set(SHAPES) <= kept


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_kept_history_replays(path):
    await replayer(sandboxed=True).replay_workflow(history_of(path))


async def _no_search(desk, query, **options):
    return None


async def _hasty(self):
    return None


async def _announce_first(self, batch):
    await run_task.search(self.context, "look again", limit=1)
    return await _BATCH(self, batch)


_BATCH = ToolCalls.batch


@pytest.mark.parametrize(
    ("owner", "name", "mutation", "shape"),
    [
        (run_task, "search", _no_search, "read"),
        (ToolCalls, "batch", _announce_first, "approve"),
        (asking.Asking, "closing_summary", _hasty, "budget"),
    ],
    ids=["an activity is left out", "an activity is added", "an ending is shortened"],
)
async def test_a_changed_workflow_is_noticed(monkeypatch, owner, name, mutation, shape):
    monkeypatch.setattr(owner, name, mutation)
    path = next(path for path in HISTORIES if path.stem.endswith(f"-{shape}"))

    with pytest.raises(NondeterminismError):
        await replayer(sandboxed=False).replay_workflow(history_of(path))


async def test_runs_of_today_replay_too(open_engine, tmp_path):
    async with open_engine(rules, toolbox=toolbox(tmp_path)) as engine:
        for play in (SHAPES["approve"], SHAPES["plan"], SHAPES["catalog"], SHAPES["elicitation"]):
            handle = await play(engine)
            await handle.result()
            history = await handle.fetch_history()
            assert_no_task_failure(history)
            await replayer(sandboxed=True).replay_workflow(history)
