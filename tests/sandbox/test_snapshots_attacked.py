"""Hostile workspaces: whatever is planted or raced, snapshots and restores stay inside and say what they left."""

import errno
import hashlib
import os
import random
import shutil
import socket
import stat
import threading
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from backstay.errors import SnapshotDamaged, SnapshotRefused, StoreUnavailable, WorkspaceChanging
from sandbox.snapshots.blobs import SnapshotBlobs
from sandbox.snapshots.restoring import STAGING
from sandbox.snapshots.snapshots import Snapshots
from sandbox.snapshots.types import SnapshotLimits
from tests.requirements import promise
from tests.sandbox.places import as_nobody

SECRET = "root:secret outside"


@pytest.fixture
def outside(tmp_path) -> Path:
    """A directory that nothing may change, with a file that nobody may copy."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "shadow").write_text(SECRET)
    (place / "shadow").chmod(0o600)
    return place


def fill_disk(monkeypatch, is_full) -> None:
    """Let the disk of the workspace be full as long as the function says so, with what a restore writes begun."""
    copy = SnapshotBlobs.copy

    def copied(blobs: SnapshotBlobs, digest: str, into: int) -> None:
        if is_full():
            os.write(into, b"begun")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        copy(blobs, digest, into)

    monkeypatch.setattr(SnapshotBlobs, "copy", copied)


@pytest.fixture
def snapshots(tmp_path) -> Snapshots:
    return Snapshots(tmp_path / "kept")


def holds_secret(tmp_path: Path) -> bool:
    return (tmp_path / "kept" / "blobs" / hashlib.sha256(SECRET.encode()).hexdigest()).exists()


def disk_use(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def untouched(outside: Path) -> bool:
    facts = (outside / "shadow").lstat()
    names = [path.name for path in outside.iterdir()]
    return names == ["shadow"] and (outside / "shadow").read_text() == SECRET and stat.S_IMODE(facts.st_mode) == 0o600


@contextmanager
def flipping(first, other):
    """Do one thing and the other in turn, in a thread, for as long as the block runs."""
    ended, turns = threading.Event(), []

    def flip():
        while not ended.is_set():
            first()
            other()
            turns.append(1)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield turns
    finally:
        ended.set()
        thread.join()


@promise("workspaces:links")
def test_a_link_to_a_file_outside_is_kept_as_a_link_and_never_followed(root, outside, snapshots, tmp_path):
    (root / "link").symlink_to(outside / "shadow")
    before = snapshots.take(root)
    (root / "link").unlink()
    (root / "link").write_text("a file")
    after = snapshots.take(root)
    (root / "link").unlink()
    (root / "link").symlink_to(outside / "shadow")

    assert not holds_secret(tmp_path)
    snapshots.restore(root, after.id)
    assert (root / "link").read_text() == "a file"
    snapshots.restore(root, before.id)
    assert (root / "link").readlink() == outside / "shadow"
    assert untouched(outside)


@promise("workspaces:links")
def test_a_link_to_a_directory_outside_is_neither_walked_nor_written_into(root, outside, snapshots, tmp_path):
    (root / "sub").mkdir()
    (root / "sub" / "shadow").write_text("mine")
    before = snapshots.take(root)
    shutil.rmtree(root / "sub")
    (root / "sub").symlink_to(outside)

    after = snapshots.take(root)
    restored = snapshots.restore(root, before.id, expect=after.id)

    assert not holds_secret(tmp_path)
    assert untouched(outside)
    assert restored.conflicts == ()
    assert (root / "sub" / "shadow").read_text() == "mine"


@promise("workspaces:races")
def test_a_directory_swapped_for_a_link_during_the_walk_leads_nowhere(root, outside, snapshots, tmp_path):
    sub, aside, link = root / "sub", root / "aside", root / "link"
    nothing = snapshots.take(root)
    sub.mkdir()
    (sub / "shadow").write_text("mine")
    link.symlink_to(outside)

    def swap_in():
        sub.rename(aside)
        link.rename(sub)

    def swap_out():
        sub.rename(link)
        aside.rename(sub)

    whole = refused = 0
    with flipping(swap_in, swap_out) as turns:
        while whole + refused < 60 or len(turns) < 60:
            try:
                found = snapshots.take(root)
                whole += 1
                sizes = {
                    change.path: change.after and change.after.size
                    for change in snapshots.changes(nothing.id, found.id)
                }
                assert sizes.get("sub/shadow") in (None, len("mine"))
                assert "link/shadow" not in sizes
            except WorkspaceChanging:
                refused += 1

    assert not holds_secret(tmp_path)
    assert untouched(outside)


@promise("workspaces:races")
def test_a_directory_swapped_for_a_link_during_a_restore_takes_nothing_outside(root, outside, snapshots):
    sub, aside, link = root / "sub", root / "aside", root / "link"
    sub.mkdir()
    link.symlink_to(outside)
    before = snapshots.take(root)
    (sub / "shadow").write_text("mine")
    (sub / "shadow").chmod(0o644)
    with_file = snapshots.take(root)

    def swap_in():
        if sub.is_dir():
            sub.rename(aside)
        link.rename(sub)

    def swap_out():
        sub.rename(link)
        aside.rename(sub)

    def careless(step):
        def done():
            try:
                step()
            except OSError:
                # The restore removes what stands in its way; then things are laid out anew.
                with suppress(OSError):
                    aside.mkdir(exist_ok=True)
                    link.symlink_to(outside)

        return done

    with flipping(careless(swap_in), careless(swap_out)) as turns:
        tries = 0
        while tries < 40 or len(turns) < 40:
            tries += 1
            for item in (before, with_file):
                try:
                    snapshots.restore(root, item.id)
                except WorkspaceChanging:
                    continue

    assert untouched(outside)


@promise("workspaces:names-outside")
def test_a_file_with_another_name_outside_is_replaced_and_not_written_through(root, outside, snapshots):
    (root / "file").write_text("before")
    before = snapshots.take(root)
    (root / "file").unlink()
    (root / "file").hardlink_to(outside / "shadow")
    after = snapshots.take(root)

    restored = snapshots.restore(root, before.id, expect=after.id)

    assert restored.paths == ("file",)
    assert (root / "file").read_text() == "before"
    assert untouched(outside)
    assert (outside / "shadow").stat().st_nlink == 1


@promise("workspaces:names-outside")
def test_the_mode_of_a_file_with_another_name_outside_is_not_changed_there(root, outside, snapshots):
    (root / "file").hardlink_to(outside / "shadow")
    before = snapshots.take(root)
    (root / "file").unlink()
    (outside / "shadow").chmod(0o640)
    (root / "file").hardlink_to(outside / "shadow")

    snapshots.restore(root, before.id)

    assert stat.S_IMODE((root / "file").stat().st_mode) == 0o600
    assert stat.S_IMODE((outside / "shadow").stat().st_mode) == 0o640


@promise("workspaces:names-outside")
def test_two_names_of_one_file_are_both_restored(root, snapshots):
    (root / "one").write_text("text")
    (root / "two").hardlink_to(root / "one")
    before = snapshots.take(root)
    (root / "one").write_text("written through both names")
    after = snapshots.take(root)

    restored = snapshots.restore(root, before.id, expect=after.id)

    assert restored.paths == ("one", "two")
    assert {(root / name).read_text() for name in ("one", "two")} == {"text"}
    assert (root / "one").samefile(root / "two")


@promise("workspaces:names-shared")
def test_a_change_through_a_name_in_the_workspace_is_told_where_a_name_outside_keeps_it(root, tmp_path, snapshots):
    store = tmp_path / "store"
    store.mkdir()
    for name in ("appended", "closed", "moved", "replaced", "still"):
        (store / name).write_text(name)
        (root / name).hardlink_to(store / name)
    before = snapshots.take(root)
    with (root / "appended").open("a") as file:
        file.write(" and more")
    (root / "closed").chmod(0o600)
    (root / "moved").rename(root / "away")
    (root / "new").write_text("new")
    (root / "new").rename(root / "replaced")
    after = snapshots.take(root)

    restored = snapshots.restore(root, before.id, expect=after.id)

    assert (restored.conflicts, restored.failed, restored.outside) == ((), (), ("appended", "closed"))
    assert set(before.outside) == {"appended", "closed", "moved", "replaced", "still"}
    assert set(after.outside) == {"appended", "closed", "away", "still"}
    assert {path.name: path.read_text() for path in root.iterdir()} == {name: name for name in before.outside}
    assert (store / "appended").read_text() == "appended and more"
    assert snapshots.restore(root, before.id, expect=after.id).outside == ()


@promise("workspaces:names-shared")
@pytest.mark.parametrize("kept", [False, True], ids=["all replaced", "one kept"])
def test_names_of_one_file_are_names_of_one_file_again(root, snapshots, kept):
    (root / "sub").mkdir()
    (root / "first").write_text("text")
    names = [root / "first", root / "sub" / "second", root / "third"]
    for name in names[1:]:
        name.hardlink_to(names[0])
    (root / "alone").write_text("text")
    before = snapshots.take(root)
    for name in names[:-1] if kept else names:
        (root / "new").write_text(f"other text {name.name}")
        (root / "new").rename(name)
    after = snapshots.take(root)

    snapshots.restore(root, before.id, expect=after.id)

    assert all(name.samefile(names[0]) for name in names)
    assert {path.stat().st_nlink for path in (*names, root / "alone")} == {1, 3}
    assert snapshots.take(root).id == before.id


@promise("workspaces:names-shared")
def test_a_name_that_somebody_else_changed_is_not_linked_to(root, snapshots):
    (root / "first").write_text("text")
    (root / "second").hardlink_to(root / "first")
    before = snapshots.take(root)
    (root / "first").unlink()
    after = snapshots.take(root)
    (root / "second").write_text("of somebody else")

    restored = snapshots.restore(root, before.id, expect=after.id)

    assert restored.paths == ("first",)
    assert {name: (root / name).read_text() for name in ("first", "second")} == {
        "first": "text",
        "second": "of somebody else",
    }


@promise("workspaces:devices")
def test_a_fifo_is_noted_and_never_opened(root, snapshots):
    before = snapshots.take(root)
    os.mkfifo(root / "fifo")
    after = snapshots.take(root)

    assert [
        (change.path, change.after and change.after.content) for change in snapshots.changes(before.id, after.id)
    ] == [("fifo", "FIFO")]
    snapshots.restore(root, before.id, expect=after.id)
    assert list(root.iterdir()) == []
    snapshots.restore(root, before.id)
    assert [failed.path for failed in snapshots.restore(root, after.id).failed] == ["fifo"]


@promise("workspaces:devices")
def test_a_file_that_becomes_a_fifo_while_it_is_opened_stops_nobody(root, snapshots):
    (root / "file").write_text("text")
    os.mkfifo(root / "fifo")

    def swap():
        (root / "file").rename(root / "other")
        (root / "fifo").rename(root / "file")

    def back():
        (root / "file").rename(root / "fifo")
        (root / "other").rename(root / "file")
        (root / "file").touch()

    done = 0
    with flipping(swap, back) as turns:
        while done < 60 or len(turns) < 60:
            done += 1
            try:
                snapshots.take(root)
            except WorkspaceChanging:
                continue


@promise("workspaces:devices")
def test_a_socket_is_noted_and_removed_when_it_was_added(root, snapshots, monkeypatch):
    before = snapshots.take(root)
    # The path of a socket may only be short.
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        after = snapshots.take(root)
    assert snapshots.changes(before.id, after.id)[0].after.content == "socket"
    snapshots.restore(root, before.id, expect=after.id)
    assert not (root / "socket").exists()


@promise("workspaces:devices")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_noted_and_never_opened(root, snapshots):
    before = snapshots.take(root)
    # A device that nothing answers to: to open it fails.
    try:
        os.mknod(root / "device", 0o666 | stat.S_IFCHR, os.makedev(250, 250))
    except PermissionError:
        pytest.skip("this machine lets nobody make devices")
    after = snapshots.take(root)

    assert snapshots.changes(before.id, after.id)[0].after.content == "device"
    snapshots.restore(root, before.id, expect=after.id)
    assert not (root / "device").exists()


@promise("workspaces:odd-names")
def test_names_that_look_like_paths_options_or_lines_are_names(root, snapshots):
    names = [b"..\\up", b"-rf", b"a\nb", b"\xff\xfe", b"~", b"$(id)", b"...", b" ", b"%s", b"\xe2\x80\xae", b"x" * 255]
    for number, name in enumerate(names):
        (root / os.fsdecode(name)).write_text(str(number))
    before = snapshots.take(root)
    for path in root.iterdir():
        path.unlink()
    after = snapshots.take(root)
    assert {os.fsencode(change.path) for change in snapshots.changes(before.id, after.id)} == set(names)

    snapshots.restore(root, before.id, expect=after.id)

    assert {os.fsencode(path.name): path.read_text() for path in root.iterdir()} == {
        name: str(number) for number, name in enumerate(names)
    }


def deep(place: Path, levels: int) -> None:
    """Directories inside each other, far longer than any path may be."""
    home = os.open(".", os.O_RDONLY)
    os.chdir(place)
    try:
        for _ in range(levels):
            Path("d" * 50).mkdir()
            os.chdir("d" * 50)
        Path("bottom").write_text("deep")
    finally:
        os.fchdir(home)
        os.close(home)


@promise("workspaces:limits")
def test_a_tree_deeper_than_any_path_is_refused_and_removed_by_an_undo(root, snapshots):
    before = snapshots.take(root)
    deep(root, 1500)

    with pytest.raises(SnapshotRefused) as refused:
        snapshots.take(root)
    assert "deeper than 100" in str(refused.value)
    restored = snapshots.restore(root, before.id)

    assert (restored.conflicts, restored.failed) == ((), ())
    assert list(root.iterdir()) == []


@promise("workspaces:races-file")
def test_a_file_that_grows_and_shrinks_while_it_is_read_is_taken_whole_or_not_at_all(root, snapshots):
    (root / "file").write_bytes(b"a" * 400_000)

    def write(letter):
        return lambda: (root / "file").write_bytes(letter * (400_000 if letter == b"a" else 300_000))

    taken = set()
    with flipping(write(b"a"), write(b"b")) as turns:
        tries = 0
        while tries < 40 or len(turns) < 40:
            tries += 1
            try:
                taken.add(snapshots.take(root).id)
            except WorkspaceChanging as error:
                assert "file is being changed" in str(error)  # noqa: PT017 - either end of the race is right
    for item in taken:
        snapshots.restore(root, item)
        text = (root / "file").read_bytes()
        assert len(set(text)) <= 1


@promise("workspaces:kinds")
def test_a_directory_that_became_a_file_and_one_that_came_back_are_restored(root, snapshots):
    (root / "thing").mkdir()
    (root / "thing" / "inside").write_text("inside")
    directory = snapshots.take(root)
    shutil.rmtree(root / "thing")
    (root / "thing").write_text("a file")
    file = snapshots.take(root)

    snapshots.restore(root, directory.id, expect=file.id)
    assert snapshots.take(root) == directory
    snapshots.restore(root, file.id, expect=directory.id)
    assert snapshots.take(root) == file


@promise("workspaces:kinds")
def test_setuid_is_seen_removed_when_a_run_set_it_and_never_given(root, snapshots):
    (root / "plain").write_text("plain")
    (root / "plain").chmod(0o755)
    (root / "rights").write_text("rights")
    (root / "rights").chmod(0o4755)
    before = snapshots.take(root)
    (root / "plain").chmod(0o4755)
    (root / "rights").write_text("changed")
    after = snapshots.take(root)
    assert ("plain", "mode") in {(change.path, change.kind) for change in snapshots.changes(before.id, after.id)}

    restored = snapshots.restore(root, before.id, expect=after.id)

    assert restored.paths == ("plain", "rights")
    assert {stat.S_IMODE((root / name).stat().st_mode) for name in ("plain", "rights")} == {0o755}
    assert snapshots.restore(root, before.id, expect=after.id).paths == ()


@promise("workspaces:kinds")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_root_gives_files_back_to_whom_they_belonged(root, snapshots):
    (root / "file").write_text("text")
    (root / "sub").mkdir()
    (root / "link").symlink_to("file")
    for name in ("file", "sub", "link"):
        os.chown(root / name, 65534, 65534, follow_symlinks=False)
    before = snapshots.take(root)
    shutil.rmtree(root / "sub")
    (root / "file").unlink()
    (root / "link").unlink()

    snapshots.restore(root, before.id)

    assert {(root / name).lstat().st_uid for name in ("file", "sub", "link")} == {65534}
    assert snapshots.take(root) == before


@promise("workspaces:tampered")
def test_an_altered_manifest_is_refused_before_anything_is_changed(root, snapshots, tmp_path):
    (root / "file").write_text("before")
    before = snapshots.take(root)
    place = tmp_path / "kept" / "manifests" / before.id
    text = zlib.decompress(place.read_bytes())
    (root / "file").write_text("after")

    for altered in (text.replace(b'"file"', b'"../x"', 1), b"{}", b"\xff"):
        place.write_bytes(zlib.compress(altered))
        with pytest.raises(SnapshotDamaged):
            snapshots.restore(root, before.id)
    place.write_bytes(b"no zlib")
    with pytest.raises(SnapshotDamaged):
        snapshots.restore(root, before.id)
    assert (root / "file").read_text() == "after"


@promise("workspaces:tampered")
def test_a_manifest_that_leads_outside_is_refused_even_with_the_right_hash(root, outside, snapshots, tmp_path):
    (root / "file").write_text(SECRET + " too")
    before = snapshots.take(root)
    text = zlib.decompress((tmp_path / "kept" / "manifests" / before.id).read_bytes())
    for path in ("../outside/shadow", "/etc/x", "a/../../outside/shadow", "", "a//b", "a/."):
        forged = text.replace(b'"file",', f'"{path}",'.encode(), 1)
        name = hashlib.sha256(forged).hexdigest()
        (tmp_path / "kept" / "manifests" / name).write_bytes(zlib.compress(forged))
        with pytest.raises(SnapshotDamaged):
            snapshots.restore(root, name)

    assert untouched(outside)


@promise("workspaces:tampered")
def test_an_altered_or_lost_blob_is_refused_before_anything_is_changed(root, snapshots, tmp_path):
    for name in ("a", "b"):
        (root / name).write_text(f"before {name}")
    before = snapshots.take(root)
    for name in ("a", "b"):
        (root / name).write_text(f"after {name}")
    (root / "added").write_text("added")
    after = snapshots.take(root)
    blob = tmp_path / "kept" / "blobs" / hashlib.sha256(b"before b").hexdigest()

    for harm in (lambda: blob.write_text("before x"), lambda: blob.write_text(""), blob.unlink):
        harm()
        with pytest.raises(SnapshotDamaged):
            snapshots.restore(root, before.id, expect=after.id)
        assert snapshots.take(root) == after


@promise("workspaces:tampered")
@pytest.mark.parametrize("snapshot_id", ["", "..", "../../etc/passwd", "0" * 64, "g" * 64, "/etc/passwd", "a\0b"])
def test_an_id_that_names_no_snapshot_is_refused(snapshot_id, root, snapshots):
    snapshots.take(root)
    for work in (
        lambda: snapshots.restore(root, snapshot_id),
        lambda: snapshots.changes(snapshot_id, snapshot_id),
        lambda: snapshots.forget([snapshot_id]),
    ):
        with pytest.raises(SnapshotDamaged):
            work()


@promise("workspaces:index")
def test_a_damaged_index_only_costs_time(root, snapshots, tmp_path):
    (root / "file").write_text("text")
    first = snapshots.take(root)
    for harm in (b"", b"{", b"[]", b'{"format":1}', b"\xff\xff", b"[" * 100_000):
        (tmp_path / "kept" / "index.json").write_bytes(harm)
        assert snapshots.take(root) == first


@promise("workspaces:roots")
def test_a_root_that_is_a_link_or_no_directory_is_refused(root, outside, snapshots, tmp_path):
    (tmp_path / "link").symlink_to(outside)
    for place in (tmp_path / "link", outside / "shadow", tmp_path / "nowhere"):
        with pytest.raises(SnapshotRefused):
            snapshots.take(place)


@promise("workspaces:roots")
def test_snapshots_never_lie_within_the_workspace(root, tmp_path):
    (tmp_path / "way").symlink_to(root)
    for place in (root / "kept", root, tmp_path / "way" / "kept"):
        with pytest.raises(SnapshotRefused):
            Snapshots(place).take(root)
    assert list(root.iterdir()) == []


@promise("workspaces:crash")
def test_what_a_killed_restore_left_is_removed_and_what_a_run_planted_there_is_not_followed(root, outside, snapshots):
    (root / "file").write_text("text")
    before = snapshots.take(root)
    (root / f"{STAGING}1").mkdir()
    (root / f"{STAGING}1" / "link").symlink_to(outside)
    (root / f"{STAGING}1" / "sub").mkdir(mode=0)
    (root / f"{STAGING}2").symlink_to(outside)

    snapshots.restore(root, before.id)

    assert [path.name for path in root.iterdir()] == ["file"]
    assert untouched(outside)


@promise("workspaces:full")
@pytest.mark.parametrize("expecting", [True, False])
def test_what_was_added_makes_room_on_a_full_disk_for_what_is_put_back(root, snapshots, monkeypatch, expecting):
    (root / "kept").write_text("before")
    (root / "removed").write_text("before, too")
    before = snapshots.take(root).id
    (root / "kept").write_text("after")
    (root / "removed").unlink()
    (root / "added").mkdir()
    (root / "added" / "big").write_text("all of the disk")
    after = snapshots.take(root).id
    fill_disk(monkeypatch, (root / "added" / "big").exists)
    restored = snapshots.restore(root, before, expect=after if expecting else None)
    assert (restored.conflicts, restored.failed) == ((), ())
    assert set(restored.paths) == {"kept", "removed", "added", "added/big"}
    assert snapshots.take(root).id == before


@promise("workspaces:full")
def test_a_disk_that_stays_full_is_named_with_the_workspace_and_a_restore_can_be_repeated(root, snapshots, monkeypatch):
    (root / "kept").write_text("before")
    before = snapshots.take(root).id
    (root / "kept").write_text("after")
    (root / "added").write_text("some of the disk")
    after = snapshots.take(root).id
    with monkeypatch.context() as full:
        fill_disk(full, lambda: True)
        with pytest.raises(StoreUnavailable, match=rf"in the workspace {root}: No space left on device; free space"):
            snapshots.restore(root, before, expect=after)
    assert {path.name: path.read_text() for path in root.iterdir()} == {"kept": "after"}
    assert snapshots.restore(root, before, expect=after).conflicts == ()
    assert snapshots.take(root).id == before


@promise("workspaces:full")
def test_a_lost_blob_is_found_before_anything_is_removed_to_make_room(root, snapshots, monkeypatch, tmp_path):
    (root / "kept").write_text("before")
    before = snapshots.take(root).id
    (root / "kept").write_text("after")
    (root / "added").write_text("all of the disk")
    (tmp_path / "kept" / "blobs" / hashlib.sha256(b"before").hexdigest()).unlink()
    fill_disk(monkeypatch, lambda: True)
    with pytest.raises(SnapshotDamaged):
        snapshots.restore(root, before)
    assert {path.name for path in root.iterdir()} == {"kept", "added"}


@promise("workspaces:limits")
def test_a_sparse_file_is_measured_by_its_length(root, tmp_path):
    snapshots = Snapshots(tmp_path / "kept", SnapshotLimits(file_bytes=1_000_000))
    with (root / "sparse").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(SnapshotRefused) as refused:
        snapshots.take(root)
    assert "sparse" in str(refused.value)


@promise("workspaces:sparse")
def test_a_sparse_file_takes_no_more_space_where_it_is_kept_or_brought_back(root, snapshots, tmp_path):
    blocks = random.Random(3)
    contents = [b"", bytes(4096), bytes(4097), b"x" + bytes(9_000_000), bytes((1 << 20) - 1) + b"x" + bytes(5000)]
    contents += [b"".join(blocks.choice((bytes(4096), b"x" * 4096)) for _ in range(600)) for _ in range(3)]
    for number, content in enumerate(contents):
        (root / f"{number}").write_bytes(content)
    with (root / "sparse").open("wb") as file:
        for place in range(0, 64 << 20, 1 << 20):
            file.seek(place)
            file.write(b"x")
        file.truncate(100 << 20)
    before = snapshots.take(root).id
    assert disk_use(tmp_path / "kept") < 16 << 20
    shutil.rmtree(root)
    root.mkdir()
    snapshots.restore(root, before)
    assert disk_use(root) < 16 << 20
    assert [(root / f"{number}").read_bytes() for number in range(len(contents))] == contents
    assert snapshots.take(root).id == before


ORDINARY = """
import os, stat
from pathlib import Path
from backstay.errors import SnapshotRefused
from sandbox.snapshots.snapshots import Snapshots

root, snapshots = Path("w"), Snapshots(Path("k"))
(root / "closed" / "sub").mkdir(parents=True)
(root / "closed" / "sub" / "file").write_text("inside")
(root / "listed").mkdir()
(root / "listed" / "file").write_text("listed")
(root / "listed" / "other").write_text("listed too")
(root / "file").write_text("plain")
(root / "fixed").mkdir()
(root / "fixed" / "file").write_text("fixed")
(root / "fixed").chmod(0o555)
(root / "unread").write_text("unread")
before = snapshots.take(root)
as_it_was = {str(p): (p.lstat().st_mode, p.read_text() if p.is_file() else "") for p in root.rglob("*")}

(root / "file").write_text("changed")
(root / "file").chmod(0)
(root / "unread").chmod(0)
(root / "closed" / "sub" / "file").write_text("changed inside")
(root / "closed").chmod(0)
(root / "listed" / "file").unlink()
(root / "listed").chmod(0o644)
(root / "fixed").chmod(0o755)
(root / "fixed" / "file").unlink()
(root / "fixed").chmod(0o555)
(root / "new").mkdir()
(root / "new" / "deep").mkdir()
(root / "new").chmod(0)
root.chmod(0o555)
try:
    snapshots.take(root)
except SnapshotRefused as refused:
    print("refused", "cannot be kept" in str(refused))
restored = snapshots.restore(root, before.id)
print(restored.conflicts, restored.failed)
print({str(p): (p.lstat().st_mode, p.read_text() if p.is_file() else "") for p in root.rglob("*")} == as_it_was)
print(snapshots.take(root) == before)
"""


@promise("workspaces:ordinary")
def test_an_ordinary_user_gets_back_what_was_closed_with_modes(reachable):
    (reachable / "ordinary").mkdir()
    ran = as_nobody(ORDINARY, folder=reachable / "ordinary")

    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "refused True",
        "() ()",
        "True",
        "True",
    ]
