"""A run with a workspace goes on at the host that has it, and nowhere else."""

import pytest

from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled
from tests.engine import ended, engine, pending, share_images
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\n"
SCRIPTS = Labelled(deleting=[Reply(calls=[("fs__delete", {"path": "names.txt"})]), DONE])


@promise("workspaces:host")
@pytest.mark.thorough
@pytest.mark.timeout(400)
async def test_a_run_with_a_workspace_waits_for_its_host_and_changes_nothing_on_another(temporal, tmp_path, postgres):
    toolbox = tmp_path / "toolbox.json"
    toolbox.write_text("{}", encoding="utf-8")
    shared = {"database_url": await postgres.new_store(), "payloads": "database", "task_queue": "host-of-workspace"}
    shared |= {"policy": POLICY, "toolbox": toolbox, "transient_seconds": 4}

    def host(name):
        folder = tmp_path / name
        room = folder / "rooms" / "desk"
        if not room.exists():
            room.mkdir(parents=True)
            (room / "names.txt").write_text(name, encoding="utf-8")
        share_images(folder / "home")
        return engine(temporal, folder, SCRIPTS, workspaces=folder / "rooms", **shared)

    async with host("first") as first:
        handle = await first.start({"text": "clear up <deleting>", "workspace": "desk", "filesystem": True})
        (request,) = await pending(handle)
        decision = {"request_id": request["id"], "verdict": "approve", "by": "ana"}
    async with host("second"):
        await handle.execute_update("decide", decision)
        (asked,) = [each for each in await pending(handle) if each["id"] != request["id"]]
        assert "start a worker there" in str(asked), asked
        assert (tmp_path / "second" / "rooms" / "desk" / "names.txt").read_text() == "second"
    async with host("first"):
        await handle.execute_update("decide", {"request_id": asked["id"], "verdict": "retry", "by": "ana"})
        result = await ended(handle)
        assert result["outcome"] == "completed", result
        assert not (tmp_path / "first" / "rooms" / "desk" / "names.txt").exists()
    async with host("second") as second:
        undo = await second.client.start_workflow(
            "UndoRun", {"workflow_id": handle.id}, id=f"undo-{handle.id}", task_queue=shared["task_queue"]
        )
        (asked,) = await pending(undo)
        assert "start a worker there" in str(asked), asked
    async with host("first"):
        await undo.execute_update("decide", {"request_id": asked["id"], "verdict": "retry", "by": "ana"})
        result = await ended(undo)
        assert result["outcome"] == "rolled_back", result["undone"]
        assert (tmp_path / "first" / "rooms" / "desk" / "names.txt").exists()
