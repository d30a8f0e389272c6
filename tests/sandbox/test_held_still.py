"""What asks the machine itself: databases, files and processor times answer every run of a program alike."""

import os
from inspect import cleandoc

import pytest
import pytest_asyncio

from tests.requirements import promise
from tests.sandbox.playing import NOW, opened, play

TODAY = "2023-11-14"
AT = "2023-11-14 22:13:20"


@pytest_asyncio.fixture(scope="module")
async def sandbox(tmp_path_factory):
    async with opened(tmp_path_factory.mktemp("jails")) as made:
        yield made


@promise("programs:held-still")
async def test_the_current_time_of_a_database_is_the_programs_in_every_form_in_which_it_is_asked(sandbox):
    source = """
        import sqlite3
        base = sqlite3.connect(":memory:")
        await asyncio.sleep(90)
        asked = (
            "current_timestamp, current_date, current_time, date(), time('now'), datetime('NOW', '+1 day')",
            "unixepoch(), strftime('%s'), strftime('%Y', 'now'), round(julianday('now'), 1)",
        )
        return [base.execute(f"SELECT {one}").fetchone() for one in asked]
    """
    assert (await play(sandbox, cleandoc(source))).result == [
        ["2023-11-14 22:14:50", TODAY, "22:14:50", TODAY, "22:14:50", "2023-11-15 22:14:50"],
        [int(NOW) + 90, str(int(NOW) + 90), "2023", 2460263.4],
    ]


@promise("programs:held-still")
async def test_other_times_of_a_database_are_what_they_were(sandbox):
    source = """
        import sqlite3
        base = sqlite3.connect(":memory:")
        base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, at DEFAULT CURRENT_TIMESTAMP, CHECK (date(at) > '2'))")
        base.execute("CREATE INDEX i ON t (date(at))")
        base.execute("INSERT INTO t (id) VALUES (1)")
        row = base.execute("SELECT * FROM t").fetchone()
        asked = "date('2020-01-31', '+1 month'), datetime(1e9, 'unixepoch'), date(NULL), date('x')"
        return [row, base.execute(f"SELECT {asked}, strftime('%j', '2020-02-01')").fetchone()]
    """
    assert (await play(sandbox, cleandoc(source))).result == [
        [1, AT],
        ["2020-03-02", "2001-09-09 01:46:40", None, None, "032"],
    ]


@promise("programs:held-still")
async def test_the_chance_of_a_database_comes_from_the_seed(sandbox):
    source = """
        import sqlite3
        base = sqlite3.connect("/tmp/base")
        base.execute("CREATE TABLE t (n)")
        base.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(20)])
        await mail.find()
        shuffled = [n for n, in base.execute("SELECT n FROM t ORDER BY random()")]
        return [shuffled, base.execute("SELECT random(), hex(randomblob(4)), length(randomblob(0))").fetchone()]
    """
    live = await play(sandbox, cleandoc(source))
    replayed = await play(sandbox, cleandoc(source), replaying=True)
    other = await play(sandbox, cleandoc(source), seed="other")
    assert live.result == replayed.result
    assert live.result[0] != other.result[0]
    assert sorted(live.result[0]) == sorted(other.result[0]) == list(range(20))
    assert live.result[1][2] == 1


@promise("programs:held-still")
@pytest.mark.parametrize("now", [NOW, 4e9], ids=["behind the machine's clock", "ahead of it"])
async def test_files_are_as_old_as_the_program_unless_it_dated_them_itself(sandbox, now):
    source = """
        import os, pathlib, shutil
        place = pathlib.Path("/tmp/file")
        place.write_text("x")
        now = [place.stat().st_mtime, os.path.getmtime("/tmp"), os.lstat(place).st_ctime_ns, place.stat()[8]]
        os.utime(place, (1e9, 1e9))
        shutil.copy2(place, "/tmp/copy")
        return [now, place.stat().st_mtime, os.stat("/tmp/copy").st_mtime, place.stat().st_size]
    """
    start = [now, now, int(now * 1e9), int(now)]
    assert (await play(sandbox, cleandoc(source), now=now)).result == [start, 1e9, 1e9, 1]


@promise("programs:held-still")
@pytest.mark.parametrize("now", [NOW, 4e9], ids=["behind the machine's clock", "ahead of it"])
async def test_entries_of_a_folder_are_as_old_as_the_program_and_in_order(sandbox, now):
    source = """
        import copy, os, pathlib
        for name in "cab":
            pathlib.Path("/tmp", name).write_text("x")
        os.utime("/tmp/c", (1e9, 1e9))
        with os.scandir("/tmp") as entries:
            found = [(each.name, each.stat().st_mtime, each.stat(follow_symlinks=False)[9]) for each in entries]
        first = next(os.scandir("/tmp"))
        kinds = [isinstance(first, os.DirEntry), repr(first), os.fspath(first), first.is_file(), first.inode() > 0]
        roots, names = os.listdir("/"), [entry.name for entry in os.scandir(b"/tmp")]
        try:
            copy.copy(first)
        except TypeError:
            kinds.append("no copy")
        return [found, kinds, os.listdir("/tmp"), roots == sorted(roots), names[0] == b"a"]
    """
    assert (await play(sandbox, cleandoc(source), now=now)).result == [
        [["a", now, int(now)], ["b", now, int(now)], ["c", 1e9, int(now)]],
        [True, "<DirEntry 'a'>", "/tmp/a", True, True, "no copy"],
        ["a", "b", "c"],
        True,
        True,
    ]


@promise("programs:held-still")
async def test_what_walks_through_folders_works(sandbox):
    source = """
        import glob, os, pathlib, shutil
        os.makedirs("/tmp/a/b/c")
        open("/tmp/a/b/file", "w").write("x")
        shutil.copytree("/tmp/a", "/tmp/d")
        found = [glob.glob("/tmp/**/file", recursive=True), [str(path) for path in pathlib.Path("/tmp/a").rglob("f*")]]
        found += [[place for place, _, _ in os.walk("/tmp/d")], [place for place, *_ in os.fwalk("/tmp/d")]]
        shutil.rmtree("/tmp/a")
        shutil.rmtree("/tmp/d", ignore_errors=False)
        return [*found, os.listdir("/tmp")]
    """
    walked = ["/tmp/d", "/tmp/d/b", "/tmp/d/b/c"]
    assert (await play(sandbox, cleandoc(source))).result == [
        ["/tmp/a/b/file", "/tmp/d/b/file"], ["/tmp/a/b/file"], walked, walked, []
    ]  # fmt: skip


@promise("programs:held-still")
async def test_the_kernel_processors_and_disks_are_told_alike_on_every_machine(sandbox):
    source = """
        import os, platform, shutil
        open("/tmp/file", "w").write("x" * 5000)
        pages = [os.sysconf(f"SC_{name}") for name in ("NPROCESSORS_ONLN", "PHYS_PAGES", "AVPHYS_PAGES", "PAGE_SIZE")]
        system = [os.uname().release, platform.version(), os.uname().nodename, os.cpu_count()]
        spaces = [shutil.disk_usage(place) for place in ("/", "/tmp")]
        return [system, pages, spaces, os.fstatvfs(os.open("/", 0)).f_bfree, os.statvfs("/tmp").f_fsid]
    """
    assert (await play(sandbox, cleandoc(source))).result == [
        ["6.0.0", "#1", "jail", 1], [1, 131072, 131072, os.sysconf("SC_PAGE_SIZE")],
        [[1 << 30, 1 << 30, 0], [16 << 20, 8192, (16 << 20) - 8192]], 0, 0,
    ]  # fmt: skip


@promise("programs:held-still")
async def test_an_archive_has_the_same_bytes_in_every_run(sandbox):
    source = """
        import hashlib, os, shutil
        os.makedirs("/tmp/folder/inner")
        open("/tmp/folder/inner/file", "w").write("x")
        await mail.find()
        names = [shutil.make_archive(f"/tmp/{kind}", kind, "/tmp/folder") for kind in ("zip", "gztar")]
        return [hashlib.sha256(open(name, "rb").read()).hexdigest() for name in names]
    """
    live = await play(sandbox, cleandoc(source))
    replayed = await play(sandbox, cleandoc(source), replaying=True)
    assert live.result == replayed.result


@promise("programs:held-still")
async def test_processor_times_are_those_of_the_programs_clock(sandbox):
    source = """
        import os, resource
        sum(range(10**6))
        return [list(os.times()), list(resource.getrusage(resource.RUSAGE_SELF))[:3], os.stat("/tmp").st_dev]
    """
    first, other = [(await play(sandbox, cleandoc(source))).result for _ in range(2)]
    assert first == other
    assert first[0][0] > 0
