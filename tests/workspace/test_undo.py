"""Writing calls happen once, leave nothing half done, and are undone to the last byte."""

import asyncio
import hashlib
import itertools
import json
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backstay.errors import IsolationUnavailable, SandboxLost, SnapshotRefused, WorkspaceBusy, WorkspaceInvalid
from sandbox.snapshots.snapshots import Snapshots
from sandbox.snapshots.types import Snapshot, SnapshotChange, SnapshotLimits
from sandbox.workspaces import owner
from sandbox.workspaces.effects import WorkspaceEffects, prune_workspaces
from sandbox.workspaces.workspace import Workspace
from sandbox.workspaces.workspaces import Claims
from tests.docs.blocks import table
from tests.requirements import promise
from tests.workspace.desk import Desk


@promise("workspaces:once")
async def test_what_was_done_under_an_effect_is_not_done_again(desk: Desk):
    first = await desk.ask("run", effect="e", command="date +%N > a; cat a")
    assert await desk.ask("run", effect="e", command="date +%N > a; cat a") == first
    assert (desk.root / "a").read_text(encoding="ascii") == first["stdout"]


@promise("workspaces:result")
async def test_a_command_tells_what_it_wrote_and_how_it_ended(desk: Desk):
    await desk.ask("write_file", path="old", content="x")
    ran = await desk.ask("run", command="echo new > a; rm old; echo out; echo err >&2; exit 3")
    assert (ran["exit_code"], ran["stdout"], ran["stderr"], ran["allowed"]) == (3, "out\n", "err\n", True)
    assert ran["artifacts"] == [
        {"path": "a", "sha256": "7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c", "size": 4}
    ]
    assert {(change["path"], change["kind"]) for change in ran["changes"]} >= {("a", "added"), ("old", "removed")}


@promise("workspaces:jails-undo")
@pytest.mark.timeout(900)
async def test_a_run_that_wrote_edited_moved_and_deleted_two_hundred_files_is_undone_to_the_last_byte(desk: Desk):
    for number in range(200):
        place = desk.root / f"d{number % 7}" / f"{number}.txt"
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"file {number}\n" * 5, encoding="ascii")
        place.chmod(0o640 if number % 2 else 0o755)
    (desk.root / "link").symlink_to("d1/1.txt")
    await desk.ask("list_directory")
    before = desk.held()
    done = [
        await desk.ask("run", command="for f in d0/*; do echo more >> $f; done; rm -r d1; ln -sfn d2 link"),
        await desk.ask(
            "run", command="mkdir n; mv d2/* n/; for i in $(seq 60); do echo $i > n/new$i; done; chmod 600 d3/*"
        ),
        await desk.ask("write_file", path="d4/4.txt", content="other"),
        await desk.ask("edit_file", path="d5/5.txt", old="file 5\n", new="", count=5),
        await desk.ask("move", source="d6", destination="n/six"),
        await desk.ask("delete", path="n", recursive=True),
    ]
    assert desk.held() != before
    for item in reversed(done):
        restored = await desk.ask("restore", snapshot=item["before"], expect=item["after"])
        assert isinstance(restored, dict), restored
    assert desk.held() == before


@promise("workspaces:jails-undo")
async def test_undoing_an_effect_by_its_id_leaves_what_others_did_since(desk: Desk):
    await desk.ask("write_file", effect="e1", path="mine", content="1")
    await desk.ask("write_file", effect="e2", path="theirs", content="2")
    assert (await desk.ask("restore", effect="e1"))["restored"] == ["mine"]
    assert list(desk.held()) == ["theirs"]
    assert await desk.ask("restore", effect="never happened") == {"restored": [], "count": 0}


@promise("workspaces:jails-undo")
async def test_what_a_person_changed_since_is_not_overwritten_and_is_named(desk: Desk):
    written = await desk.ask("write_file", path="a", content="1")
    (desk.root / "a").unlink()
    (desk.root / "a").write_text("a person's", encoding="ascii")
    said = await desk.ask("restore", snapshot=written["before"], expect=written["after"])
    assert "'a'" in said
    assert (desk.root / "a").read_text(encoding="ascii") == "a person's"


@promise("workspaces:lost-for-good")
async def test_a_command_that_failed_names_what_it_destroyed_for_good(desk: Desk):
    os.mkfifo(desk.root / "pipe")
    said = await desk.ask("run", command="rm pipe; for i in $(seq 400); do mkdir d && cd d; done")
    assert "what it did was undone, but 1 thing could not be brought back, such as 'pipe'" in said
    assert desk.held() == {}


@promise("workspaces:once")
async def test_an_effect_that_was_cut_off_is_undone_before_anything_else_happens(desk: Desk, area):
    await desk.ask("write_file", path="a", content="before")
    workspace = Workspace(name=desk.name, root=desk.root)
    snapshots = Snapshots(area / "snapshots" / workspace.key)
    taken = snapshots.take(desk.root)
    unfinished = {"effect": "cut", "tool": "run", "before": taken.id, "after": None, "answer": None}
    (area / "state/written" / workspace.key / "unfinished").write_text(json.dumps(unfinished), encoding="ascii")
    (desk.root / "half").write_text("half", encoding="ascii")
    (desk.root / "a").write_text("half", encoding="ascii")
    assert await desk.ask("outcome", effect="cut") == {"applied": False, "answer": None}
    assert list(desk.held()) == ["a"]
    assert (desk.root / "a").read_text(encoding="ascii") == "before"


@promise("workspaces:sparse")
async def test_a_command_that_writes_too_much_in_sparse_files_fills_no_disk_with_what_is_kept_of_it(desk: Desk, area):
    said = await desk.ask("run", command="for i in 1 2 3; do truncate -s $((20000000 + i)) $i; done")
    assert "it wrote 60000006 bytes, more than 52428800" in said
    assert desk.held() == {}
    blobs = list((area / "snapshots" / Workspace(name=desk.name, root=desk.root).key / "blobs").iterdir())
    assert sorted(blob.stat().st_size for blob in blobs) == [20000001, 20000002, 20000003]
    assert sum(blob.stat().st_blocks * 512 for blob in blobs) < 1 << 20


@promise("workspaces:too-much")
async def test_a_file_that_no_snapshot_keeps_blocks_every_call_that_writes_until_a_person_removes_it(desk: Desk):
    with (desk.root / "big").open("wb") as file:
        file.truncate(SnapshotLimits().file_bytes + 1)
    (desk.root / "big").chmod(0o644)
    for tool, arguments in (("delete", {"path": "big"}), ("run", {"command": "rm big"})):
        with pytest.raises(SnapshotRefused, match=r"^big cannot be kept .*over the limit.* until a person has, in the"):
            await desk.ask(tool, **arguments)
    assert (await desk.ask("list_directory"))["total"] == 1
    (desk.root / "big").unlink()
    assert (await desk.ask("write_file", path="a", content="1"))["size"] == 1


@promise("workspaces:too-much")
def test_the_page_has_the_limits_of_snapshots():
    limits = SnapshotLimits()
    assert [row[1] for row in table("docs/workspace.md", "What a snapshot can keep is bounded:")] == [
        f"{limits.entries:,}",
        f"{limits.total_bytes // 10**9} GB",
        f"{limits.file_bytes // 10**6} MB, or `BACKSTAY_ARTIFACTS_MB` if that is more",
        f"{limits.depth}",
    ]


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let a person do something when the snapshot before the next call has been taken."""
    take, waiting = Snapshots.take, [act]

    def taken(snapshots: Snapshots, root: Path) -> Snapshot:
        snapshot = take(snapshots, root)
        if waiting:
            waiting.pop()()
        return snapshot

    monkeypatch.setattr(Snapshots, "take", taken)


def had_back(desk: Desk, area: Path, said: str) -> dict[str, bytes]:
    """Return the files that a person can have back, found as the page says."""
    named = re.search(r"replaced-[0-9a-f-]+\.json", said)
    assert named is not None, said
    (record,) = (area / "state/written").glob(f"*/{named[0]}")
    blobs = area / "snapshots" / record.parent.name / "blobs"
    replaced = json.loads(record.read_bytes())["replaced"]
    return {path: (blobs / held).read_bytes() for path, held in replaced.items()}


@promise("workspaces:replaced")
async def test_what_a_person_changed_after_a_call_was_cut_off_can_be_had_back_and_the_next_call_says_so(
    desk: Desk, area
):
    await desk.ask("write_file", path="a", content="before")
    workspace = Workspace(name=desk.name, root=desk.root)
    taken = Snapshots(area / "snapshots" / workspace.key).take(desk.root)
    begun = {"effect": "cut", "tool": "run", "before": taken.id}
    (area / "state/written" / workspace.key / "unfinished").write_text(json.dumps(begun), encoding="ascii")
    (desk.root / "a").write_text("a person's", encoding="ascii")
    (desk.root / "notes").mkdir()
    (desk.root / "notes/new").write_text("theirs, too", encoding="ascii")
    # The check of the call comes first, and its answer reaches nobody.
    assert await desk.ask("outcome", effect="cut") == {"applied": False, "answer": None}
    assert (desk.root / "a").read_text(encoding="ascii") == "before"
    read = await desk.ask("read_file", path="a")
    assert "an earlier call of run was cut off and undone: a person can have back what 2 files held" in read["notice"]
    assert had_back(desk, area, read["notice"]) == {"a": b"a person's", "notes/new": b"theirs, too"}
    assert "notice" not in await desk.ask("read_file", path="a")


@promise("workspaces:replaced")
async def test_what_a_person_changed_during_a_call_that_failed_can_be_had_back_and_its_error_says_so(
    desk: Desk, area, monkeypatch
):
    await desk.ask("write_file", path="a", content="before")
    meanwhile(monkeypatch, lambda: (desk.root / "theirs").write_text("a person's", encoding="ascii"))
    said = await desk.ask("edit_file", path="a", old="nowhere", new="x")
    assert said.startswith("a: `old` occurs 0 times, not 1; nothing was changed; a person can have back what 1 file")
    assert had_back(desk, area, said) == {"theirs": b"a person's"}


@promise("workspaces:replaced-undone")
async def test_what_a_person_changed_during_a_call_can_be_had_back_after_its_undo_which_says_so(
    desk: Desk, area, monkeypatch
):
    await desk.ask("write_file", path="a", content="before")
    meanwhile(monkeypatch, lambda: (desk.root / "theirs").write_text("a person's", encoding="ascii"))
    ran = await desk.ask("run", command="echo ran > a")
    undo = desk.call("restore", snapshot=ran["before"], expect=ran["after"])
    said = (await desk.workspaces.call(undo.model_copy(update={"effect": "w/1/1/undo"})))["ok"]
    assert said["kept"].startswith("a person can have back what 2 files held meanwhile, such as 'a', with replaced-")
    assert had_back(desk, area, said["kept"]) == {"a": b"ran\n", "theirs": b"a person's"}
    assert not (desk.root / "theirs").exists()
    records = (area / "state/written").glob("*/replaced-*.json")
    assert "w/1/1" in [json.loads(record.read_bytes())["effect"] for record in records]


@promise("workspaces:replaced")
async def test_a_file_that_a_person_saves_while_a_call_is_reverted_is_left_alone_and_named(desk: Desk, monkeypatch):
    await desk.ask("write_file", path="a", content="before")
    meanwhile(monkeypatch, lambda: (desk.root / "new").write_text("by then", encoding="ascii"))
    changes = Snapshots.changes

    def later(snapshots: Snapshots, before: str, after: str) -> list[SnapshotChange]:
        (desk.root / "new").write_text("and by now", encoding="ascii")
        return changes(snapshots, before, after)

    monkeypatch.setattr(Snapshots, "changes", later)
    said = await desk.ask("edit_file", path="a", old="nowhere", new="x")
    assert "1 thing could not be brought back, such as 'new': somebody else" in said
    assert (desk.root / "new").read_text(encoding="ascii") == "and by now"


@promise("workspaces:replaced")
async def test_a_call_that_failed_and_changed_nothing_restores_nothing(desk: Desk, monkeypatch):
    await desk.ask("write_file", path="a", content="before")
    monkeypatch.setattr(Snapshots, "restore", None)
    assert await desk.ask("edit_file", path="a", old="nowhere", new="x") == (
        "a: `old` occurs 0 times, not 1; nothing was changed"
    )


@promise("workspaces:replaced")
async def test_what_could_not_be_kept_before_a_call_was_reverted_is_said(desk: Desk):
    said = await desk.ask("run", command="for i in $(seq 400); do mkdir d && cd d; done")
    assert "nothing of it was kept; no copy could be kept of what was there before that: d/d/d" in said
    assert desk.held() == {}


@promise("workspaces:replaced")
async def test_pruning_keeps_what_a_revert_replaced_until_its_run_is_pruned(desk: Desk, tmp_path):
    snapshots = tmp_path / "snapshots/key"
    effects = WorkspaceEffects(desk.root, Snapshots(snapshots), tmp_path / "workspace-state/written/key", written_mb=1)

    async def cut_off() -> dict[str, object]:
        (desk.root / "theirs").write_text("a person's", encoding="ascii")
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await effects.write(desk.call("run", effect="w/1/1", command="make"), cut_off)
    kept = snapshots / "blobs" / hashlib.sha256(b"a person's").hexdigest()
    await prune_workspaces(tmp_path, ["w/2"])
    assert kept.read_bytes() == b"a person's"
    await prune_workspaces(tmp_path, ["w/1"])
    assert not kept.exists()


@promise("workspaces:once")
async def test_the_outcome_of_an_effect_is_known_with_its_answer(desk: Desk):
    written = await desk.ask("write_file", effect="e", path="a", content="1")
    assert await desk.ask("outcome", effect="e") == {"applied": True, "answer": written}


@promise("workspaces:one-outcome")
@pytest.mark.parametrize("reached", [{}, {"network": ["far.example"]}], ids=["alone", "with-a-host"])
async def test_a_command_that_is_cut_off_after_its_end_is_recorded_as_what_became_of_its_files(
    desk: Desk, monkeypatch, reached
):
    await desk.ask("write_file", path="a", content="before")
    ended, go_on, take = asyncio.Event(), threading.Event(), Snapshots.take
    loop, taken = asyncio.get_running_loop(), itertools.count(1)

    def slow(snapshots: Snapshots, root: Path) -> Snapshot:
        snapshot = take(snapshots, root)
        if next(taken) == 2:
            loop.call_soon_threadsafe(ended.set)
            go_on.wait(60)
        return snapshot

    monkeypatch.setattr(Snapshots, "take", slow)
    running = asyncio.create_task(desk.ask("run", effect="e", command="echo after > a; echo > new", **reached))
    await asyncio.wait_for(ended.wait(), 60)
    running.cancel()
    await asyncio.wait({running}, timeout=1)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await desk.ask("outcome", effect="e"))["applied"]
    assert ((desk.root / "a").read_text(encoding="ascii"), (desk.root / "new").exists()) == ("after\n", True)
    assert sorted((await desk.ask("restore", effect="e"))["restored"]) == ["a", "new"]
    assert (desk.root / "a").read_text(encoding="ascii") == "before"


@promise("workspaces:one-outcome")
async def test_the_snapshot_before_a_command_counts_against_the_time_for_its_answer(desk: Desk, monkeypatch):
    take = Snapshots.take

    def slow(snapshots: Snapshots, root: Path) -> Snapshot:
        time.sleep(3)
        return take(snapshots, root)

    monkeypatch.setattr(Snapshots, "take", slow)
    call = desk.call("run", command="sleep 60").model_copy(update={"within": 5.0})
    said = (await desk.workspaces.call(call))["ok"]
    assert said["exit_code"] == 124
    assert said["duration_ms"] < 4000


@promise("workspaces:claims")
async def test_a_workspace_belongs_to_one_run_until_it_is_released(desk: Desk, workspaces):
    await desk.ask("write_file", path="a", content="1")
    other = Desk(workspaces, desk.name, desk.root, run="run-2")
    with pytest.raises(WorkspaceBusy, match="in use by run run-1") as refused:
        await other.ask("read_file", path="a")
    assert refused.value.facts["holder"] == "run-1"
    with pytest.raises(WorkspaceBusy):
        workspaces.claim(f"{desk.name}/inner", "run-2")
    assert workspaces.holder(desk.name) == "run-1"
    assert not workspaces.release(desk.name, "run-2")
    assert workspaces.release(desk.name, "run-1")
    assert (await other.ask("read_file", path="a"))["content"] == "1"


@promise("workspaces:names")
async def test_a_workspace_that_jails_cannot_reach_is_refused_with_the_folder_that_is_closed(desk: Desk, monkeypatch):
    if os.geteuid():
        pytest.skip("the jail of an ordinary user enters what that user owns")
    (desk.root / "inner/deep").mkdir(parents=True)
    os.chown(desk.root, 1234, 1234)
    (desk.root / "inner").chmod(0o700)
    closed = Desk(desk.workspaces, f"{desk.name}/inner/deep", desk.root / "inner/deep")
    # A worker that may make mount namespaces opens the way itself.
    monkeypatch.setattr(owner, "can_open_ways", lambda: False)
    with pytest.raises(WorkspaceInvalid, match=f"chmod o\\+x {desk.root}/inner"):
        await closed.ask("list_directory")


@promise("workspaces:claims")
async def test_a_claim_passes_from_a_run_that_is_known_to_be_over(area):
    claims = Claims(area / "claims-alone")
    workspace = Workspace(name="w", root=area / "w")
    claims.claim(workspace, "old")
    claims.claim(workspace, "old")
    assert not claims.free(workspace, "another")
    with pytest.raises(WorkspaceBusy):
        claims.claim(workspace, "new")
    assert claims.free(workspace, "old")
    claims.claim(workspace, "new")
    assert claims.holder(workspace) == "new"


@promise("workspaces:names")
@pytest.mark.parametrize(
    "asked", ["", ".", "..", "../x", "a/../../x", "/etc", "a\0b", "a\nb", "x" * 300, "linked", "linked/in", "file"]
)
async def test_only_a_plain_folder_beneath_the_operators_is_a_workspace(asked, area):
    folder = area / "named"
    (folder / "real/in").mkdir(parents=True, exist_ok=True)
    (folder / "file").touch()
    if not (folder / "linked").is_symlink():
        (folder / "linked").symlink_to("real")
    with pytest.raises(WorkspaceInvalid):
        Workspace.find(folder, asked)
    assert Workspace.find(folder, str(folder / "real/in")).name == "real/in"
    assert not (area / "x").exists()


@promise("workspaces:names")
async def test_what_the_engine_keeps_is_no_workspace(workspaces, area):
    inside = Workspace(name="w", root=area)
    with pytest.raises(WorkspaceInvalid, match="are not apart"):
        inside.require_apart(area / "state")


@promise("workspaces:isolation")
def test_the_errors_of_isolation_are_those_that_callers_expect():
    assert issubclass(IsolationUnavailable, RuntimeError)
    assert not SandboxLost.final
