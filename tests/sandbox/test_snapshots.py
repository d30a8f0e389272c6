"""Snapshots of a workspace: what is in them, what changed, and that all of it comes back."""

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from backstay.errors import SnapshotDamaged, SnapshotRefused
from sandbox.snapshots.snapshots import Snapshots
from sandbox.snapshots.types import SnapshotLimits
from tests.requirements import promise
from tests.sandbox.places import HOUSE

ROOT = os.geteuid() == 0
# An ordinary user could not go on meddling with what it closed; that has a test of its own.
FILE_MODES = (0o644, 0o600, 0o755, 0o666, *((0o444, 0o400, 0) if ROOT else ()))
FOLDER_MODES = (0o755, 0o700, 0o775, 0o1777, 0o2755, *((0o555, 0o111, 0) if ROOT else ()))


@pytest.fixture
def snapshots(tmp_path) -> Snapshots:
    return Snapshots(tmp_path / "kept")


def seen(root: Path) -> dict[str, tuple]:
    """Everything below a directory, read the plain way."""
    found = {}
    for path in (root, *root.rglob("*")):
        facts = path.lstat()
        content = b""
        if path.is_symlink():
            content = os.fsencode(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        found[str(path)] = (facts.st_mode, facts.st_uid, facts.st_gid, content)
    return found


def plant(root: Path, dice: random.Random, files: int) -> None:
    """A tree such as people have: nested, with hidden and ignored files, a repository, links, odd names and modes."""
    folders = [root]
    for number in range(files // 6):
        name = dice.choice(["src", ".git", "build", "a b", "ünï", "x-y", "x"]) + str(number % 9)
        folder = dice.choice(folders) / name
        folder.mkdir(exist_ok=True)
        folders.append(folder)
    for number in range(files):
        name = dice.choice(["file", ".env", "new\nline", "-rf", "*", "\udcff\udcfe", "x.tar.gz", "a" * 200])
        place = dice.choice(folders) / f"{name}{number}"
        place.write_bytes(dice.randbytes(dice.choice([0, 1, 100, 5000])))
        place.chmod(dice.choice(FILE_MODES))
    (root / ".gitignore").write_text("build*\n")
    for number in range(files // 10):
        target = dice.choice(["nowhere", "/etc/passwd", "..", ".", "file0", "\udcff"])
        (dice.choice(folders) / f"link{number}").symlink_to(target)
    for folder in folders[1:]:
        folder.chmod(dice.choice(FOLDER_MODES))


def meddle(root: Path, dice: random.Random, files: int) -> None:
    """What a run may do: write, edit, move, delete, change modes, and put one kind of thing in place of another."""
    plain, folders = [], []
    done = 0
    while done < files:
        if done % 20 == 0:
            everything = sorted(path for path in root.rglob("*") if not path.is_symlink())
            plain = [path for path in everything if path.is_file()]
            folders = [root, *(path for path in everything if path.is_dir())]
        place, folder = dice.choice(plain), dice.choice(folders)
        if not place.is_file() or not folder.is_dir():
            continue
        step(done, place, folder, root, dice)
        done += 1


def step(number: int, place: Path, folder: Path, root: Path, dice: random.Random) -> None:
    match number % 8:
        case 0:
            (folder / f"written{number}").write_bytes(dice.randbytes(300))
        case 1:
            place.write_bytes(dice.randbytes(80))
        case 2:
            place.rename(folder / f"moved{number}")
        case 3:
            place.unlink()
        case 4:
            place.chmod(dice.choice(FILE_MODES))
        case 5:
            place.unlink()
            place.mkdir()
            (place / "inside").symlink_to("/nowhere")
        case 6 if folder != root and sum(1 for _ in folder.rglob("*")) < 20:
            shutil.rmtree(folder)
            if dice.random() < 0.5:
                folder.symlink_to("/nowhere/at/all")
            else:
                folder.write_text("no folder any more")
        case _:
            folder.chmod(dice.choice(FOLDER_MODES))


@promise("workspaces:undo")
@pytest.mark.parametrize("seed", range(3))
def test_an_undo_of_a_run_that_wrote_edited_moved_and_deleted_200_files_restores_every_byte_mode_and_symlink(
    seed, root, snapshots
):
    dice = random.Random(seed)
    plant(root, dice, 400)
    as_it_was = seen(root)
    before = snapshots.take(root)

    meddle(root, dice, 200)
    after = snapshots.take(root)
    assert len(snapshots.changes(before.id, after.id)) > 100
    restored = snapshots.restore(root, before.id, expect=after.id)

    assert seen(root) == as_it_was
    assert (restored.conflicts, restored.failed) == ((), ())
    assert snapshots.take(root) == before
    assert snapshots.restore(root, before.id, expect=after.id).paths == ()
    assert snapshots.restore(root, after.id).failed == ()
    assert snapshots.take(root) == after


@promise("workspaces:same")
def test_the_same_tree_has_the_same_id_wherever_it_lies(root, snapshots, tmp_path):
    (root / "a").mkdir()
    (root / "a" / "file").write_text("text")
    shutil.copytree(root, tmp_path / "copy", symlinks=True)

    assert Snapshots(tmp_path / "other").take(tmp_path / "copy") == snapshots.take(root)


@promise("workspaces:sees")
def test_empty_directories_ignored_files_and_nested_repositories_are_in_it(root, snapshots):
    (root / "sub" / ".git" / "objects").mkdir(parents=True)
    (root / "sub" / ".git" / "config").write_text("[core]\n\tfsmonitor = touch /tmp/never\n")
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").write_text("ignored")
    before = snapshots.take(root)
    as_it_was = seen(root)

    shutil.rmtree(root / "sub")
    (root / "x.log").unlink()
    snapshots.restore(root, before.id)

    assert seen(root) == as_it_was


@promise("workspaces:speed")
def test_files_that_did_not_change_are_not_read_again(root, snapshots):
    (root / "large").write_bytes(b"x" * 3_000_000)
    os.utime(root / "large")
    first = snapshots.take(root)
    wait_until_settled(root)
    snapshots.take(root)

    before = bytes_read()
    assert snapshots.take(root) == first
    assert bytes_read() - before < 1_000_000


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


def wait_until_settled(root: Path) -> None:
    """Until a file written now has a time well after those of the tree: then no tick is shared."""
    changed = max(path.lstat().st_ctime_ns for path in root.rglob("*"))
    probe = root.parent / "probe"
    while probe.write_text("") is None or probe.stat().st_ctime_ns < changed + 40_000_000:
        pass


@promise("workspaces:racy")
def test_a_file_rewritten_in_the_tick_of_its_snapshot_is_seen(root, snapshots):
    place = root / "file"
    place.write_text("0000")
    ids = set()
    for number in range(60):
        opened = os.open(place, os.O_WRONLY)
        os.write(opened, f"{number:04}".encode())
        os.close(opened)
        os.utime(place, (1, 1))
        ids.add(snapshots.take(root).id)

    assert len(ids) == 60


@promise("workspaces:racy")
def test_files_that_go_in_the_tick_of_their_snapshot_are_missed(root, snapshots):
    empty = snapshots.take(root)
    for number in range(20):
        (root / "file").write_text(f"{number}")
        assert snapshots.take(root).files == 1
        (root / "file").unlink()
        assert snapshots.take(root) == empty


@promise("workspaces:changes")
def test_two_snapshots_are_compared_by_path_kind_and_size(root, snapshots):
    (root / "gone").write_text("gone for good")
    (root / "moved").write_text("the same bytes elsewhere")
    (root / "edited").write_text("one")
    (root / "run.sh").write_text("true")
    (root / "link").symlink_to("edited")
    (root / "thing").mkdir()
    before = snapshots.take(root)

    (root / "gone").unlink()
    (root / "moved").rename(root / "thing" / "here")
    (root / "edited").write_text("three")
    (root / "run.sh").chmod(0o755)
    (root / "link").unlink()
    (root / "link").symlink_to("gone")
    (root / "new").mkdir()
    after = snapshots.take(root)
    changes = snapshots.changes(before.id, after.id)

    sizes = [
        (change.path, change.kind, change.before and change.before.size, change.after and change.after.size)
        for change in changes
    ]
    assert sizes == [
        ("edited", "edited", 3, 5),
        ("gone", "removed", 13, None),
        ("link", "edited", 0, 0),
        ("moved", "removed", 24, None),
        ("new", "added", None, 0),
        ("run.sh", "mode", 4, 4),
        ("thing/here", "added", None, 24),
    ]
    assert snapshots.changes(after.id, after.id) == []


@promise("workspaces:others")
def test_what_others_changed_since_is_left_alone_and_reported(root, snapshots):
    (root / "kept").mkdir()
    for name in ("run", "both", "other", "deleted", "kept/run"):
        (root / name).write_text("before")
    before = snapshots.take(root)
    for name in ("run", "both", "kept/run"):
        (root / name).write_text("by the run")
    (root / "deleted").unlink()
    (root / "made").mkdir()
    (root / "made" / "run").write_text("by the run")
    (root / "new").write_text("by the run")
    after = snapshots.take(root)
    for name in ("both", "other", "deleted", "made/other", "new"):
        (root / name).write_text("by somebody else")
    shutil.rmtree(root / "kept")

    restored = snapshots.restore(root, before.id, expect=after.id)

    assert (root / "run").read_text() == "before"
    for name in ("both", "other", "deleted", "made/other", "new"):
        assert (root / name).read_text() == "by somebody else"
    assert not (root / "made/run").exists()
    assert not (root / "kept").exists()
    assert sorted(conflict.path for conflict in restored.conflicts) == ["both", "deleted", "kept/run", "made", "new"]
    assert restored.paths == ("made/run", "run")


@promise("workspaces:forgotten")
def test_forgotten_snapshots_are_gone_and_those_that_are_kept_are_whole(root, snapshots, tmp_path):
    ids = []
    for number in range(3):
        (root / "same").write_text("same")
        (root / "file").write_text(f"version {number}")
        ids.append(snapshots.take(root).id)

    snapshots.forget(keep=[ids[1]])

    assert len(list((tmp_path / "kept" / "blobs").iterdir())) == 2
    with pytest.raises(SnapshotDamaged):
        snapshots.restore(root, ids[0])
    snapshots.restore(root, ids[1])
    assert (root / "file").read_text() == "version 1"
    assert snapshots.take(root).id == ids[1]
    (root / "file").write_text("version 2")
    assert snapshots.take(root).id == ids[2]
    snapshots.restore(root, ids[1])
    snapshots.restore(root, ids[2])
    assert (root / "file").read_text() == "version 2"


@promise("workspaces:private")
def test_only_this_user_can_read_what_is_kept(root, snapshots, tmp_path):
    (root / "file").write_text("secret")
    snapshots.take(root)
    kept = [path.lstat().st_mode for path in (tmp_path / "kept", *(tmp_path / "kept").rglob("*"))]

    assert {stat.S_IMODE(mode) for mode in kept if stat.S_ISDIR(mode)} == {0o700}
    assert {stat.S_IMODE(mode) for mode in kept if stat.S_ISREG(mode)} == {0o600}


@promise("workspaces:many")
def test_a_tree_of_ten_thousand_files_is_kept_and_restored(root, snapshots):
    for folder in range(100):
        (root / str(folder)).mkdir()
        for file in range(100):
            (root / str(folder) / str(file)).touch()
    before = snapshots.take(root)
    assert before.files == 10_000

    shutil.rmtree(root / "7")
    (root / "8" / "8").write_text("edited")
    after = snapshots.take(root)
    assert len(snapshots.changes(before.id, after.id)) == 102
    snapshots.restore(root, before.id, expect=after.id)
    assert snapshots.take(root) == before


@promise("workspaces:limits")
@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (SnapshotLimits(file_bytes=100), ("deep/large", "150", "100")),
        (SnapshotLimits(total_bytes=200), ("200",)),
        (SnapshotLimits(entries=3), ("3",)),
        (SnapshotLimits(depth=1), ("deep", "1")),
    ],
)
def test_what_is_over_a_limit_is_refused_by_name_and_limit_and_removed_all_the_same(limits, words, root, tmp_path):
    (root / "small").write_text("small")
    before = Snapshots(tmp_path / "kept", limits).take(root)
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "large").write_text("x" * 150)
    (root / "deep" / "er" / "other").write_text("y" * 90)
    snapshots = Snapshots(tmp_path / "kept", limits)

    with pytest.raises(SnapshotRefused) as refused:
        snapshots.take(root)
    assert all(word in str(refused.value) for word in words)
    restored = snapshots.restore(root, before.id)

    assert (restored.conflicts, restored.failed) == ((), ())
    assert snapshots.take(root) == before


def killed_after(calls: int, work) -> bool:
    """Run the work in a child that dies at its nth change of the disk; say whether it came that far."""
    with warnings.catch_warnings():
        # The child does nothing but this, so it waits for no lock of another thread.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            left = [calls]
            for name in ("rename", "mkdir", "rmdir", "unlink", "symlink", "fchmod", "fsync", "replace"):
                setattr(os, name, dying(getattr(os, name), left))
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def dying(call, left: list[int]):
    def counted(*arguments, **named):
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **named)

    return counted


@promise("workspaces:crash")
@pytest.mark.thorough
def test_a_restore_that_is_killed_at_any_moment_can_be_repeated(root, snapshots):
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "f").write_text("f")
    (root / "edited").write_text("before")
    (root / "file").write_text("a file")
    (root / "link").symlink_to("file")
    (root / "d").chmod(0o555)
    before = snapshots.take(root)
    (root / "d").chmod(0o755)
    shutil.rmtree(root / "d")
    (root / "d").write_text("no directory")
    (root / "edited").write_text("after")
    (root / "file").unlink()
    (root / "file").mkdir()
    (root / "file" / "x").write_text("x")
    (root / "link").unlink()
    after = snapshots.take(root)
    theirs = root / "theirs"

    deaths = 0
    while killed_after(deaths + 1, lambda: snapshots.restore(root, before.id, expect=after.id)):
        deaths += 1
        theirs.write_text(f"{deaths}")
        restored = snapshots.restore(root, before.id, expect=after.id)
        assert (restored.conflicts, restored.failed) == ((), ()), deaths
        assert theirs.read_text() == f"{deaths}"
        theirs.unlink()
        assert snapshots.take(root) == before, deaths
        snapshots.restore(root, after.id)
        assert snapshots.take(root) == after
    assert deaths > 10


@promise("workspaces:crash")
def test_a_snapshot_that_is_killed_at_any_moment_leaves_the_earlier_ones_whole(root, snapshots, tmp_path):
    (root / "file").write_text("before")
    before = snapshots.take(root)
    deaths, another = 0, True
    while another:
        for number in range(3):
            (root / f"new{number}").write_text(f"{number} {deaths}")
        another = killed_after(deaths + 1, lambda: snapshots.take(root))
        deaths += another
        after = snapshots.take(root)
        assert list((tmp_path / "kept" / "writing").iterdir()) == []
        snapshots.restore(root, before.id)
        assert snapshots.take(root) == before
        snapshots.restore(root, after.id)
        assert snapshots.take(root) == after
    assert deaths > 5


@promise("workspaces:turns")
def test_threads_and_processes_that_use_one_folder_take_turns(root, snapshots, tmp_path):
    (root / "file").write_text("text")
    expected = snapshots.take(root)
    source = """
import sys
from pathlib import Path
from sandbox.snapshots.snapshots import Snapshots
print({Snapshots(Path(sys.argv[1])).take(Path(sys.argv[2])).id for _ in range(20)})
"""
    command = (sys.executable, "-c", source, str(tmp_path / "kept"), str(root))
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(HOUSE)})
    taken, ended = [], threading.Event()

    def forget():
        while not ended.is_set():
            snapshots.forget([expected.id])

    forgetting = threading.Thread(target=forget)
    forgetting.start()
    try:
        while other.poll() is None:
            taken.append(snapshots.take(root))
    finally:
        ended.set()
        forgetting.join()
    assert other.stdout
    with other.stdout as said:
        assert said.read().strip() == str({expected.id})
    assert set(taken) == {expected}
