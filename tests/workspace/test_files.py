"""The file tools: what they answer, and that no path and no file leads them out of the workspace."""

import asyncio
import base64
import os
import re
import socket
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from backstay.tools.tool import WorkspaceLimits
from sandbox.guest.files import places, writing
from tests.requirements import promise
from tests.sizes import sized
from tests.workspace.desk import WROTE_MUCH, Desk

OUTSIDE = "only outside"
ENDLESS = "(a|a)*$^"


@promise("workspaces:tools")
async def test_a_file_is_written_edited_read_moved_and_deleted(desk: Desk):
    assert (await desk.ask("write_file", path="a/b.txt", content="one\ntwo\n"))["size"] == 8
    assert (await desk.ask("edit_file", path="a/b.txt", old="two", new="three"))["replaced"] == 1
    read = await desk.ask("read_file", path="/workspace/a/b.txt")
    assert read == {
        "path": "a/b.txt", "size": 10, "encoding": "utf-8", "content": "one\nthree\n", "offset": 0, "next_offset": None,
    }  # fmt: skip
    assert (await desk.ask("move", source="a/b.txt", destination="c/d.txt"))["destination"] == "c/d.txt"
    listed = await desk.ask("list_directory", recursive=True)
    assert [(entry["path"], entry["kind"]) for entry in listed["entries"]] == [
        ("a", "directory"), ("c", "directory"), ("c/d.txt", "file"),
    ]  # fmt: skip
    assert (await desk.ask("delete", path="c", recursive=True))["deleted"] == 2
    assert (await desk.ask("delete", path="a"))["kind"] == "directory"
    assert desk.held() == {}


@promise("workspaces:owner")
async def test_a_write_keeps_the_mode_of_the_file_and_no_other_name_of_it(desk: Desk):
    (desk.root / "run.sh").write_text("old", encoding="ascii")
    (desk.root / "run.sh").chmod(0o750)
    os.link(desk.root / "run.sh", desk.root / "other")
    await desk.ask("write_file", path="run.sh", content="new")
    assert stat.S_IMODE((desk.root / "run.sh").stat().st_mode) == 0o750
    assert (desk.root / "other").read_text(encoding="ascii") == "old"


@promise("workspaces:paths")
async def test_a_file_with_a_name_outside_keeps_there_what_it_holds(desk: Desk, area: Path):
    outside = area / f"{desk.name}-outside"
    outside.write_text(OUTSIDE, encoding="ascii")
    os.link(outside, desk.root / "linked")
    await desk.ask("write_file", path="linked", content="changed")
    assert (desk.root / "linked").read_text(encoding="ascii") == "changed"
    assert outside.read_text(encoding="ascii") == OUTSIDE
    assert outside.stat().st_uid == os.geteuid()


@promise("workspaces:two-names")
async def test_a_file_that_is_moved_onto_another_name_of_it_has_one_name_fewer_and_an_undo_brings_it_back(desk: Desk):
    (desk.root / "a").write_text("x", encoding="ascii")
    (desk.root / "a").chmod(0o644)
    os.link(desk.root / "a", desk.root / "b")
    before = desk.held()
    given = {"source": "a", "destination": "b", "overwrite": True}
    assert await desk.diff("move", **given) == "rename from a\nrename to b\nboth are names of one file\n"
    assert [change["path"] for change in (await desk.ask("move", effect="e", **given))["changes"]] == ["a"]
    assert list(desk.held()) == ["b"]
    await desk.ask("restore", effect="e")
    assert desk.held() == before
    assert (desk.root / "a").samefile(desk.root / "b")


@promise("workspaces:names-shared")
async def test_a_file_that_was_only_moved_onto_another_one_has_not_changed_outside(desk: Desk, area: Path):
    stores = [area / f"{desk.name}-{name}" for name in ("moved", "written")]
    for store in stores:
        store.write_text(store.name, encoding="ascii")
        store.chmod(0o666)
    for store, name in zip(stores, "xy", strict=True):
        os.link(store, desk.root / name)
    for name in "ab":
        (desk.root / name).write_text(name, encoding="ascii")
    # What the second one holds then was in a file that is gone, and yet it was written.
    done = await desk.ask("run", effect="e", command="mv x a && cat b > y && rm b")
    assert "1 file, such as 'y'" in done["outside"]
    said = await desk.ask("restore", effect="e")
    assert "4 paths were brought back, 1 were not, or not wholly: 'y': its other name" in said
    await desk.ask("run", effect="f", command="mv x a")
    assert (await desk.ask("restore", effect="f"))["restored"] == ["a", "x"]
    assert stores[0].read_text(encoding="ascii") == stores[0].name


@promise("workspaces:names-shared")
async def test_an_undo_does_not_succeed_where_a_name_outside_keeps_what_a_command_did(desk: Desk, area: Path):
    store = area / f"{desk.name}-store"
    store.write_text("kept\n", encoding="ascii")
    store.chmod(0o666)
    os.link(store, desk.root / "linked")
    done = await desk.ask("run", effect="e", command="echo more >> linked")
    assert "another name outside of the workspace" in done["outside"]
    assert "1 file, such as 'linked'" in done["outside"]
    said = await desk.ask("restore", effect="e")
    assert said.startswith(
        "1 paths were brought back, 1 were not, or not wholly: "
        "'linked': its other name outside of the workspace keeps what it held"
    )
    assert (desk.root / "linked").read_text(encoding="ascii") == "kept\n"
    assert store.read_text(encoding="ascii") == "kept\nmore\n"
    assert (await desk.ask("restore", effect="e"))["count"] == 0


@promise("workspaces:case")
def test_a_file_whose_name_changes_in_its_case_only_stays_where_case_makes_no_difference(tmp_path, monkeypatch):
    def look_whatever_case(fd: int, name: str) -> os.stat_result | None:
        names = (path.name for path in Path(f"/proc/self/fd/{fd}").iterdir())
        found = next((there for there in names if there.casefold() == name.casefold()), None)
        return None if found is None else os.stat(found, dir_fd=fd, follow_symlinks=False)

    monkeypatch.setattr(places, "ROOT", str(tmp_path))
    monkeypatch.setattr(writing, "look", look_whatever_case)
    (tmp_path / "readme").write_text("x", encoding="ascii")
    for source, destination, overwrite in (("readme", "README", True), ("README", "ReadMe", False)):
        change = writing.move(source, destination, overwrite=overwrite)
        assert change.shown() == f"rename from {source}\nrename to {destination}\n"
        change.do()
        assert [path.name for path in tmp_path.iterdir()] == [destination]


@promise("workspaces:owner")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
async def test_what_is_written_belongs_to_the_owner_of_the_workspace_and_never_to_root(desk: Desk):
    await desk.ask("write_file", path="a", content="x")
    assert (desk.root / "a").stat().st_uid == desk.root.stat().st_uid != 0
    given = Desk(desk.workspaces, f"{desk.name}-given", desk.root.with_name(f"{desk.name}-given"))
    given.root.mkdir()
    os.chown(given.root, 1234, 1234)
    await given.ask("run", command="mkdir d; echo x > d/b")
    assert {path.stat().st_uid for path in given.root.rglob("*")} == {1234}


@promise("workspaces:owner-later")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
async def test_what_root_puts_there_later_is_given_to_the_owner_before_the_next_call_that_writes(
    desk: Desk, area: Path
):
    await desk.ask("write_file", path="a", content="x")
    owner = desk.root.stat().st_uid
    outside = area / f"{desk.name}-outside"
    outside.mkdir(mode=0o700)
    (outside / "file").write_text(OUTSIDE, encoding="ascii")
    later = desk.root / "later"
    (later / "deep").mkdir(parents=True, mode=0o700)
    (later / "deep/file").write_text("old\n", encoding="ascii")
    (later / "deep/file").chmod(0o600)
    (later / "link").symlink_to(outside)
    (later / "file link").symlink_to(outside / "file")
    os.link(outside / "file", later / "linked")
    done = await desk.ask("run", effect="e", command="cd later/deep && echo new >> file")
    assert (done["exit_code"], done["changes"]) == (0, [{"path": "later/deep/file", "kind": "edited"}])
    given = {path.name: path.lstat().st_uid for path in (later, *later.rglob("*"))}
    assert given == dict.fromkeys(("later", "deep", "file", "link", "file link"), owner) | {"linked": 0}
    assert {path.stat().st_uid for path in (outside, outside / "file")} == {0}
    await desk.ask("restore", effect="e")
    assert (later / "deep/file").read_text(encoding="ascii") == "old\n"
    assert (later / "deep/file").stat().st_uid == owner


@promise("workspaces:exact")
async def test_an_edit_that_does_not_occur_as_often_as_said_changes_nothing(desk: Desk):
    await desk.ask("write_file", path="a", content="x x x")
    assert await desk.ask("edit_file", path="a", old="x", new="y") == (
        "a: `old` occurs 3 times, not 1; nothing was changed"
    )
    assert (await desk.ask("edit_file", path="a", old="x", new="y", count=3))["replaced"] == 3


@promise("workspaces:exact")
async def test_parts_of_a_file_fit_together_and_never_cut_a_character(desk: Desk):
    text = "äöü€🙂" * 40
    (desk.root / "a").write_text(text, encoding="utf-8")
    (desk.root / "a").chmod(0o644)
    came, offset = "", 0
    while offset is not None:
        part = await desk.ask("read_file", path="a", offset=offset, limit=170)
        came, offset = came + part["content"], part["next_offset"]
    assert came == text


@promise("workspaces:tools")
@pytest.mark.parametrize(
    ("data", "encoding", "used", "content"),
    [
        (b"\xff\x00\x01", None, "base64", base64.b64encode(b"\xff\x00\x01").decode()),
        ("größe".encode("latin-1"), "latin-1", "latin-1", "größe"),
        ("größe".encode("utf-16"), "utf-16", "utf-16", "größe"),
        (b"", None, "utf-8", ""),
    ],
    ids=["binary", "latin", "wide", "empty"],
)
async def test_text_and_bytes_are_read_as_what_they_are(desk: Desk, data, encoding, used, content):
    (desk.root / "a").write_bytes(data)
    (desk.root / "a").chmod(0o644)
    asked = {} if encoding is None else {"encoding": encoding}
    read = await desk.ask("read_file", path="a", **asked)
    assert (read["encoding"], read["content"]) == (used, content)


@promise("workspaces:tools")
async def test_a_search_finds_lines_by_expression_or_literally_in_files_of_a_name(desk: Desk):
    for name, text in {"a.py": "x = 1\ny = a.b\n", "b.txt": "a.b\n", "c.py": "axb\0"}.items():
        (desk.root / name).write_text(text, encoding="ascii")
        (desk.root / name).chmod(0o644)
    found = await desk.ask("search", pattern="a.b")
    assert [(match["path"], match["line"]) for match in found["matches"]] == [("a.py", 2), ("b.txt", 1)]
    found = await desk.ask("search", pattern="A.B", literal=True, ignore_case=True, glob="*.py")
    assert found["matches"] == [{"path": "a.py", "line": 2, "text": "y = a.b"}]
    assert "not a regular expression" in await desk.ask("search", pattern="(")


GLOBS = {
    "*.py": "main.py src/a.py src/b/c.py",
    "**/*.py": "main.py src/a.py src/b/c.py",
    "src/*.py": "src/a.py",
    "src/**/*.py": "src/a.py src/b/c.py",
    "*.{ts,tsx}": "x.ts src/y.tsx",
    "{src,lib}/**": "src/a.py src/b/c.py src/y.tsx",
    "src/": "src/a.py src/b/c.py src/y.tsx",
    "./*.ts": "x.ts",
    "/main.py": "main.py",
    "[!x]*.ts": "",
    r"*.t\s": "x.ts",
    "?.py": "src/a.py src/b/c.py",
    "src?a.py": "",
}


@promise("workspaces:search-names")
async def test_the_names_that_a_search_is_for_are_written_as_for_git(desk: Desk):
    for name in ("main.py", "src/a.py", "src/b/c.py", "x.ts", "src/y.tsx"):
        (desk.root / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.root / name).write_text("here\n", encoding="ascii")
    found = {glob: await desk.ask("search", pattern="here", glob=glob) for glob in GLOBS}
    assert {glob: {match["path"] for match in each["matches"]} for glob, each in found.items()} == {
        glob: set(paths.split()) for glob, paths in GLOBS.items()
    }
    beneath = await desk.ask("search", pattern="here", path="src", glob="b/*.py")
    assert [match["path"] for match in beneath["matches"]] == ["src/b/c.py"]
    # Patterns that could be tried in very many ways, and are not.
    name, folders = "a" * 200, "/".join("a" * 60)
    (desk.root / folders).mkdir(parents=True)
    (desk.root / folders / name).write_text("here\n", encoding="ascii")
    (desk.root / folders / f"{name}b").write_text("here\n", encoding="ascii")
    for glob in ("*a" * 12 + "*b", "**/a/" * 12 + "*b", "{" + "*a" * 12 + "*b,c}"):
        matches = (await desk.ask("search", pattern="here", glob=glob))["matches"]
        assert [match["path"] for match in matches] == [f"{folders}/{name}b"]
    for glob in ("*.{ts", "[z-a]"):
        assert "is not a pattern of names" in await desk.ask("search", pattern="here", glob=glob)


@promise("workspaces:search-ends")
async def test_a_search_that_never_ends_is_ended(desk: Desk):
    (desk.root / "a").write_text("a" * 5000 + "\n", encoding="ascii")
    (desk.root / "a").chmod(0o644)
    # The limit of its own is ten seconds of processor time.
    limits = WorkspaceLimits(cpu_s=sized(10, 1))
    said = await desk.workspaces.call(desk.call("search", pattern=ENDLESS).model_copy(update={"limits": limits}))
    assert "search was ended" in said["error"]


@promise("workspaces:jails-many")
async def test_ten_thousand_files_are_listed_in_order_and_in_parts(desk: Desk):
    for number in range(10_000):
        (desk.root / f"{number % 100:02}").mkdir(exist_ok=True)
        (desk.root / f"{number % 100:02}/{number:05}").touch()
    listed = await desk.ask("list_directory", recursive=True, limit=2000)
    assert (listed["total"], len(listed["entries"]), listed["next_offset"]) == (10_100, 2000, 2000)
    last = await desk.ask("list_directory", recursive=True, offset=10_099)
    assert ([entry["path"] for entry in last["entries"]], last["next_offset"]) == (["99/09999"], None)


PATHS = {
    "up": "../x",
    "up within": "a/../../x",
    "elsewhere": "/etc/passwd",
    "beside": "/workspaces/x",
    "nul": "a\0b",
    "long name": "n" * 300,
    "link": "link",
    "through a link": "folder/secret",
    "link to nothing": "nowhere",
    "loop": "loop",
    "pipe": "pipe",
    "socket": "socket",
    "processes": "proc/self/environ",
    "itself": "",
    "itself spelt": "/workspace/./",
}


@pytest.fixture
def trapped(desk: Desk, area: Path) -> Desk:
    """A workspace full of things that lead out of it, or that never answer."""
    outside = area / f"{desk.name}-outside"
    outside.mkdir()
    (outside / "secret").write_text(OUTSIDE, encoding="ascii")
    (desk.root / "link").symlink_to(outside / "secret")
    (desk.root / "folder").symlink_to(outside)
    (desk.root / "nowhere").symlink_to(outside / "made")
    (desk.root / "loop").symlink_to("loop")
    (desk.root / "proc").symlink_to("/proc")
    os.mkfifo(desk.root / "pipe")
    here = Path.cwd()
    os.chdir(desk.root)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    os.chdir(here)
    return desk


@promise("workspaces:paths")
@pytest.mark.thorough
@pytest.mark.timeout(600)
async def test_no_path_leads_a_file_tool_out_of_the_workspace(trapped: Desk, area: Path):
    outside = area / f"{trapped.name}-outside"
    before = trapped.held()
    for name, path in PATHS.items():
        for tool, given in (("read_file", {}), ("write_file", {"content": "x"})):
            said = await trapped.ask(tool, path=path, **given)
            assert isinstance(said, str), (tool, name, said)
            assert OUTSIDE not in said
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text(encoding="ascii") == OUTSIDE
    assert trapped.held() == before


@promise("workspaces:paths")
async def test_links_are_moved_and_deleted_themselves_and_never_what_they_name(trapped: Desk, area: Path):
    outside = area / f"{trapped.name}-outside"
    assert (await trapped.ask("move", source="link", destination="moved"))["kind"] == "symlink"
    for name in ("moved", "folder", "nowhere", "loop", "proc", "pipe", "socket"):
        assert (await trapped.ask("delete", path=name, recursive=True))["deleted"] == 1
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert trapped.held() == {}


@promise("workspaces:paths")
async def test_a_search_and_a_listing_enter_no_link_and_wait_for_nothing(trapped: Desk):
    found = await trapped.ask("search", pattern=OUTSIDE, literal=True)
    assert found["matches"] == []
    listed = await trapped.ask("list_directory", recursive=True)
    assert {entry["path"]: entry["kind"] for entry in listed["entries"]} == {
        "folder": "symlink", "link": "symlink", "loop": "symlink", "nowhere": "symlink", "pipe": "fifo",
        "proc": "symlink", "socket": "socket",
    }  # fmt: skip


@promise("workspaces:paths")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
async def test_a_device_is_not_opened(desk: Desk):
    os.mknod(desk.root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    assert await desk.ask("read_file", path="zero") == "zero is a device, and no plain file"
    assert await desk.ask("write_file", path="zero", content="x") == "zero is a device, and no plain file"


@promise("workspaces:itself")
async def test_the_workspace_itself_is_neither_moved_nor_deleted_nor_moved_into_itself(desk: Desk):
    await desk.ask("write_file", path="a/b", content="x")
    before = desk.held()
    for tool, given in (
        ("delete", {"path": ".", "recursive": True}),
        ("move", {"source": "/workspace", "destination": "a/c"}),
        ("move", {"source": "a", "destination": "a/b/c"}),
        ("move", {"source": "a", "destination": "../a"}),
        ("write_file", {"path": "/workspace", "content": "x"}),
    ):
        assert isinstance(await desk.ask(tool, **given), str)
    assert desk.held() == before


@promise("workspaces:itself")
async def test_names_that_are_no_text_are_shown_and_harm_nothing(desk: Desk):
    for name in (b"a\nb", b"\xff\xfe", b"\x1b[31m"):
        (desk.root / os.fsdecode(name)).write_bytes(b"x")
    listed = await desk.ask("list_directory")
    assert [entry["path"] for entry in listed["entries"]] == ["\x1b[31m", "a\nb", "\\xff\\xfe"]


@promise("workspaces:jails-races")
@pytest.mark.timeout(600)
async def test_a_parent_that_is_swapped_for_a_link_while_files_are_written_leads_nowhere(desk: Desk, area: Path):
    outside = area / f"{desk.name}-outside"
    outside.mkdir()
    swap = f"for i in $(seq 200); do mkdir d 2>/dev/null; rmdir d; ln -s {outside} d; rm d; done"
    swapping = asyncio.create_task(desk.ask("run", command=swap))
    for number in range(3):
        await desk.ask("write_file", path=f"d{number}/x", content="x")
        await desk.ask("write_file", path="d/x", content="x")
    await swapping
    assert list(outside.iterdir()) == []


@promise("workspaces:diff")
async def test_what_would_change_is_shown_and_nothing_is_changed(desk: Desk):
    await desk.ask("write_file", path="a", content="one\ntwo\n")
    before = desk.held()
    assert await desk.diff("edit_file", path="a", old="two", new="three") == (
        "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    )
    assert await desk.diff("write_file", path="n/b", content="x") == (
        "--- /dev/null\n+++ b/n/b\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"
    )
    assert await desk.diff("delete", path="a") == "--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"
    assert await desk.diff("move", source="a", destination="b") == "rename from a\nrename to b\n"
    assert await desk.diff("write_file", path="a", content=base64.b64encode(b"\0").decode(), encoding="base64") == (
        "binary file a: 8 bytes -> 1 bytes\n"
    )
    assert "occurs 0 times" in await desk.diff("edit_file", path="a", old="four", new="x")
    assert desk.held() == before


@promise("workspaces:lines")
async def test_only_a_line_feed_ends_a_line_in_diffs_and_in_what_a_search_finds(desk: Desk):
    odd = "page\x0c one\r two\u2028 three\x85 four"
    await desk.ask("write_file", path="a", content=f"{odd}\nfive\r\nsix\n")
    diff = await desk.diff("edit_file", path="a", old="six", new="seven")
    assert diff == f"--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n {odd}\n five\r\n-six\n+seven\n"
    found = await desk.ask("search", pattern="(four|five|six)$")
    assert [match["line"] for match in found["matches"]] == [1, 2, 3]


@promise("workspaces:diff-true")
async def test_a_change_that_is_made_is_never_said_to_fail_because_it_cannot_be_shown(desk: Desk):
    with (desk.root / "big").open("wb") as big:
        big.truncate(17 << 20)
    (desk.root / "closed").write_text("x", encoding="ascii")
    (desk.root / "closed").chmod(0)
    assert await desk.diff("delete", path="big") == "deleted file big: 17825792 bytes; too large for a diff\n"
    assert await desk.diff("delete", path="closed") == "deleted file closed: 1 bytes; Permission denied\n"
    # A worker that is not root can keep no copy of a closed file, and refuses to write beside one.
    for path in ("closed", "big") if os.geteuid() == 0 else ():
        assert (await desk.ask("delete", path=path))["deleted"] == 1
    lines = "\n" * (15 << 20)
    assert await desk.diff("write_file", path="lines", content=lines) == (
        "lines: nothing -> 15728640 bytes; too large for a diff\n"
    )
    assert (await desk.ask("write_file", path="lines", content=lines))["size"] == 15 << 20


@promise("workspaces:diff-true")
async def test_what_would_fail_is_said_before_it_is_tried(desk: Desk):
    await desk.ask("write_file", path="a/b", content="x")
    await desk.ask("write_file", path="c", content="x")
    given = {"source": "a", "destination": "c", "overwrite": True}
    assert await desk.diff("move", **given) == await desk.ask("move", **given)


def mounted(desk: Desk) -> set[str]:
    """Return how the workspace is mounted in the jails that are at work now: `ro` or `rw`."""
    name = "/".join(desk.root.parts[-3:])
    found: set[str] = set()
    for mounts in Path("/proc").glob("[0-9]*/mountinfo"):
        with suppress(OSError):
            lines = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
            found |= {line[5].split(",")[0] for line in lines if line[3].endswith(name) and line[4] == "/workspace"}
    return found


@promise("workspaces:read-only")
@pytest.mark.parametrize(
    ("tool", "arguments", "how"),
    [("search", {"pattern": ENDLESS}, "ro"), ("run", {"command": "sleep 60"}, "rw")],
    ids=["reads", "writes"],
)
async def test_a_tool_that_reads_has_the_workspace_mounted_read_only_in_a_run_that_may_write(
    desk: Desk, tool, arguments, how
):
    (desk.root / "a").write_text("a" * 5000 + "\n", encoding="ascii")
    (desk.root / "a").chmod(0o644)
    working = asyncio.create_task(desk.ask(tool, **arguments))
    async with asyncio.timeout(150):
        # A jail is mounted for writing for a moment before it is closed.
        while mounted(desk) != {how}:
            await asyncio.sleep(0.05)
    assert not working.done()
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working


@promise("workspaces:narrowed")
async def test_limits_of_a_call_only_ever_lower_those_of_the_worker(desk):
    generous = WorkspaceLimits(memory_mb=1 << 20, cpu_s=1 << 20, artifacts_mb=1 << 20)
    call = desk.call("write_file", path="much", content="x" * (2 << 20))
    said = await desk.workspaces.call(call.model_copy(update={"limits": WorkspaceLimits(artifacts_mb=1)}))
    assert re.search(WROTE_MUCH, said["error"]), said
    assert desk.held() == {}
    command = desk.call("run", command="ulimit -d; ulimit -t; head -c 60M /dev/zero > much; sleep 280")
    # Nothing but the look at what it has written ends it, however long a busy machine takes to look.
    said = await desk.workspaces.call(command.model_copy(update={"limits": generous, "seconds": 300.0}))
    assert "it wrote more than 50 MB" in said["error"]
    command = desk.call("run", command="ulimit -d; ulimit -t")
    said = await desk.workspaces.call(command.model_copy(update={"limits": generous}))
    assert said["ok"]["stdout"].split() == [str(2048 << 10), "300"]


@promise("workspaces:moved")
async def test_files_that_a_call_only_moves_or_swaps_do_not_count_as_written_and_copies_of_them_do(desk: Desk):
    (desk.root / "folder").mkdir()
    (desk.root / "folder/big").write_bytes(b"x" * (2 << 20))
    (desk.root / "other").write_bytes(b"y" * (2 << 20))
    swap = "mv other kept && mv renamed/big other && mv kept renamed/big"
    for tool, arguments, fault in (
        ("move", {"source": "folder", "destination": "renamed"}, None),
        ("run", {"command": swap}, None),
        ("run", {"command": "cp other copied; mv other again"}, WROTE_MUCH),
    ):
        call = desk.call(tool, **arguments)
        said = await desk.workspaces.call(call.model_copy(update={"limits": WorkspaceLimits(artifacts_mb=1)}))
        assert re.search(fault, said["error"]) if fault else "ok" in said, said
    assert (desk.root / "renamed/big").read_bytes()[:1] == b"y"
    assert sorted(path.name for path in desk.root.iterdir()) == ["other", "renamed"]
