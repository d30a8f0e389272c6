import pytest
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from tests.replay.gated import Before, Gated, Ungated, history_of
from tests.requirements import promise


async def replayed(code, name):
    replaying = Replayer(workflows=[code], workflow_runner=UnsandboxedWorkflowRunner())
    await replaying.replay_workflow(history_of(name))


@promise("runs:gate")
@pytest.mark.parametrize("name", ["before", "after"])
async def test_gated_code_replays_runs_that_began_before_the_change_and_after_it(name):
    await replayed(Gated, name)


@promise("runs:gate")
async def test_without_the_gate_a_run_that_began_before_the_change_cannot_go_on():
    await replayed(Before, "before")
    with pytest.raises(NondeterminismError):
        await replayed(Ungated, "before")


@promise("runs:gate")
async def test_a_worker_of_the_release_before_notices_a_run_that_began_after_the_change():
    with pytest.raises(NondeterminismError):
        await replayed(Before, "after")
