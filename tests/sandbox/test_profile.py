"""Profiles: exactly which words confine a jail, which binary reads them, and which caps a machine allows."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backstay.errors import IsolationUnavailable
from sandbox.images.image import Image
from sandbox.images.own_root import Entry, OwnRoot
from sandbox.isolation.cgroups import Cgroups, find_cgroups, release_cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import JailProfile, command, interpreter_arguments, outside_uid
from sandbox.limits import Limits, shell_limits
from tests.requirements import promise
from tests.sandbox.places import HOUSE, as_nobody, as_self, image, readable_nsjail

SNAPSHOTS = Path(__file__).parent / "snapshots"
NSJAIL = Nsjail(path=Path("/usr/bin/nsjail"), version="3.6", sha256="a" * 64)
IMAGE = Image(kind="python", hash="b" * 64, path=Path("/images/b/root"), python="3.11.7")
OWN = OwnRoot(
    path=Path("/roots/own"),
    digest="c" * 64,
    shell=("/bin/sh", "-c"),
    entries=(Entry(name="bin", target="usr/bin"), Entry(name='o"dd'), Entry(name="usr")),
)
"""What a jail that reaches hosts is reviewed with, so that both are seen."""
GROUPS_1 = Cgroups(version=1, memory=Path("/g/memory/w"), pids=Path("/g/pids/w"), cpu=Path("/g/cpu/w"))
GROUPS_2 = Cgroups(version=2, memory=Path("/g/w"), pids=Path("/g/w"), cpu=Path("/g/w"))
USERS = {"self": as_self, "nobody": as_nobody}


@promise("sandbox:profile")
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("kind", ["code", "shell", "network"])
def test_the_configuration_is_the_one_that_was_reviewed(kind, machine):
    # A change here is a change of what confines programs: review it word by word, then write the file anew.
    workspace = None if kind == "code" else Path("/workspaces/one")
    root = OWN if kind == "network" else None
    ids = {"outside_uid": 200007, "outside_gid": 200007}
    profile = JailProfile(NSJAIL, IMAGE, kind=kind, machine=machine, workspace=workspace, root=root, **ids)
    assert profile.text() == (SNAPSHOTS / f"{kind}.{machine}.cfg").read_text(encoding="utf-8")


def names(kind: str, machine: str, action: str) -> set[str]:
    """The calls of one action of a policy, without the conditions they stand under."""
    text = (HOUSE / f"sandbox/isolation/{kind}.policy.{machine}").read_text(encoding="utf-8")
    text = re.sub(r"//.*", "", text)
    text = re.sub(r"\((\w+, )*\w+\) \{[^}]*\}", "", text)
    found = re.findall(re.escape(action) + r" \{([^}]*)\}", text)
    return {name for block in found for name in re.findall(r"\w+(?:\[\d+\])?", block)}


@promise("sandbox:profile")
@pytest.mark.parametrize("kind", ["code", "shell"])
def test_the_untested_machine_is_allowed_nothing_that_the_tested_one_is_not(kind):
    renamed = {
        "SYSCALL[160]": "SYSCALL[63]",
        "sendfile": "sendfile64",
        "SYSCALL[84]": "sync_file_range",
        "getpgid": "getpgrp",
    }
    tested, untested = names(kind, "x86_64", "ALLOW"), names(kind, "aarch64", "ALLOW")
    assert len(untested) > 60
    assert {renamed.get(name, name) for name in untested} <= tested
    of_x86 = {"iopl", "ioperm", "modify_ldt"}
    assert names(kind, "x86_64", "KILL_PROCESS") - of_x86 == names(kind, "aarch64", "KILL_PROCESS")


@promise("sandbox:profile")
@pytest.mark.parametrize("kind", ["code", "shell"])
def test_no_call_is_both_deadly_and_allowed(kind):
    for machine in ("x86_64", "aarch64"):
        assert not names(kind, machine, "KILL_PROCESS") & names(kind, machine, "ALLOW")


@promise("sandbox:profile")
def test_a_machine_without_a_policy_is_refused_by_name():
    with pytest.raises(IsolationUnavailable) as refused:
        JailProfile(NSJAIL, IMAGE, machine="riscv64").text()
    assert refused.value.cause == "there is no system call policy for machines of type riscv64"


@promise("sandbox:profile")
def test_the_name_of_the_file_stands_for_its_content(tmp_path):
    first = JailProfile(NSJAIL, IMAGE).write(tmp_path)
    assert JailProfile(NSJAIL, IMAGE).write(tmp_path) == first
    others = [
        JailProfile(NSJAIL, IMAGE, limits=Limits(cpu_s=21)).write(tmp_path),
        JailProfile(NSJAIL, IMAGE, outside_uid=200001).write(tmp_path),
        JailProfile(NSJAIL, IMAGE, cgroups=GROUPS_1).write(tmp_path),
        JailProfile(NSJAIL.model_copy(update={"sha256": "c" * 64}), IMAGE).write(tmp_path),
        JailProfile(NSJAIL, IMAGE.model_copy(update={"hash": "d" * 64})).write(tmp_path),
        JailProfile(NSJAIL, IMAGE, kind="shell").write(tmp_path),
    ]
    assert len({first, *others}) == 7
    assert sorted(tmp_path.iterdir()) == sorted({first, *others})
    first.write_text("half a fi", encoding="utf-8")
    assert JailProfile(NSJAIL, IMAGE).write(tmp_path).read_text(encoding="utf-8") != "half a fi"


@promise("sandbox:cgroups-allowed")
@pytest.mark.parametrize(
    ("groups", "lines"),
    [
        (Cgroups(), []),
        (
            GROUPS_1,
            [
                'cgroup_mem_mount: "/g/memory"',
                'cgroup_mem_parent: "w"',
                "cgroup_mem_max: 553648128",
                'cgroup_pids_mount: "/g/pids"',
                'cgroup_pids_parent: "w"',
                "cgroup_pids_max: 16",
                'cgroup_cpu_mount: "/g/cpu"',
                'cgroup_cpu_parent: "w"',
                "cgroup_cpu_ms_per_sec: 1000",
            ],
        ),
        (
            GROUPS_2,
            [
                "use_cgroupv2: true",
                'cgroupv2_mount: "/g/w"',
                "cgroup_mem_max: 553648128",
                "cgroup_pids_max: 16",
                "cgroup_cpu_ms_per_sec: 1000",
            ],
        ),
        (
            Cgroups(version=1, pids=Path("/g/pids/w")),
            ['cgroup_pids_mount: "/g/pids"', 'cgroup_pids_parent: "w"', "cgroup_pids_max: 16"],
        ),
    ],
    ids=["none", "version 1", "version 2", "pids alone"],
)
def test_cgroup_caps_are_those_that_the_machine_allows(groups, lines):
    text = JailProfile(NSJAIL, IMAGE, cgroups=groups).text()
    assert [line for line in text.splitlines() if "cgroup" in line and not line.startswith("clone_")] == lines


@promise("sandbox:profile-paths")
def test_a_path_cannot_add_words_to_the_configuration(reachable):
    odd = reachable / 'a" rw: true }\nkeep_env: true # \\ é'
    shutil.copytree(image().path, odd / "root", symlinks=True)
    built = image().model_copy(update={"path": odd / "root"})
    nsjail = Nsjail.find()
    profile = JailProfile(nsjail, built).write(reachable)
    assert "\nkeep_env: true" not in profile.read_text(encoding="utf-8")
    line = command(nsjail, profile, *interpreter_arguments()[:-1], "-c", "print(open('/x', 'w'))")
    done = subprocess.run(line, env={"KEY": "x"}, capture_output=True, text=True, check=False, timeout=150)
    assert "OSError: [Errno 30] Read-only file system: '/x'" in done.stderr


@promise("sandbox:sines")
def test_sines_and_sums_do_not_depend_on_the_processor(reachable):
    # The tunable of the C library switches off what this very processor would otherwise be used for.
    source = """
import math, random
random.seed(1)
numbers = [random.uniform(-50, 50) for _ in range(20_000)]
print([math.sin(x) for x in numbers] + [math.exp(x) for x in numbers] + [abs(x) ** 1.37 for x in numbers])
"""
    nsjail = Nsjail.find()
    profile = JailProfile(nsjail, image()).write(reachable)
    weaker = reachable / "weaker.cfg"
    words = "AVX512F,-AVX2,-AVX,-FMA,-FMA4,-SSE4_2"
    weaker.write_text(re.sub("-FMA,-FMA4", f"-{words}", profile.read_text(encoding="utf-8")), encoding="utf-8")
    told = [
        subprocess.run(
            command(nsjail, item, *interpreter_arguments()[:-1], "-c", source),
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for item in (profile, weaker)
    ]
    assert told[0] == told[1]
    assert len(told[0]) > 1_000_000


@promise("sandbox:uid")
def test_the_uid_outside_is_one_of_its_own_for_each_slot_of_root_and_else_the_workers():
    uids = [outside_uid(slot) for slot in range(3)]
    if os.geteuid():
        assert uids == [os.geteuid()] * 3
    else:
        assert len(set(uids)) == 3
        assert min(uids) >= 60_000


@promise("sandbox:nsjail")
def test_a_binary_that_is_named_comes_before_all_others(tmp_path):
    bundled = Nsjail.find(folders=())
    named = Path(shutil.copy(bundled.path, tmp_path / "mine"))
    found = Nsjail.find(str(named), folders=(str(bundled.path.parent),))
    assert found == Nsjail(path=named, version="unknown", sha256=bundled.sha256)


@promise("sandbox:nsjail")
def test_a_binary_on_the_path_comes_before_that_of_the_wheel_but_a_script_does_not(tmp_path):
    bundled = Nsjail.find(folders=())
    assert bundled.version == "3.6"
    for folder in ("script", "plain", "real"):
        (tmp_path / folder).mkdir()
    (tmp_path / "script/nsjail").write_text(f"#!{sys.executable}\nprint('I am no jail')\n", encoding="utf-8")
    (tmp_path / "script/nsjail").chmod(0o755)
    shutil.copyfile(bundled.path, tmp_path / "plain/nsjail")
    (tmp_path / "plain/nsjail").chmod(0o644)
    folders = [str(tmp_path / folder) for folder in ("script", "gone")]
    assert Nsjail.find(folders=tuple(folders)) == bundled
    shutil.copy(bundled.path, tmp_path / "real/nsjail")
    assert Nsjail.find(folders=(*folders, str(tmp_path / "real"))).path == tmp_path / "real/nsjail"


@promise("sandbox:nsjail")
@pytest.mark.parametrize(
    ("content", "fault"),
    [(None, "does not exist"), ("#!/bin/sh\nexec true\n", "is not a binary")],
    ids=["gone", "script"],
)
def test_a_setting_that_names_no_binary_is_refused_and_not_replaced(content, fault, tmp_path):
    named = tmp_path / "nsjail"
    if content:
        named.write_text(content, encoding="utf-8")
        named.chmod(0o755)
    with pytest.raises(IsolationUnavailable) as refused:
        Nsjail.find(str(named))
    assert refused.value.cause == f"BACKSTAY_NSJAIL names {str(named)!r}, which {fault}"
    assert isinstance(refused.value, RuntimeError)


SHELL = """
import json, os, socket, stat, subprocess, sys, threading
from pathlib import Path

def tried(action):
    try:
        action()
    except OSError as error:
        return os.strerror(error.errno)
    return "done"

thread = threading.Thread(target=lambda: None)
thread.start(); thread.join()
started = subprocess.run(["/usr/bin/python3", "-S", "-c", "print(42)"], capture_output=True, text=True)
print(json.dumps({
    "started": started.stdout, "environment": dict(os.environ), "folder": os.getcwd(), "groups": len(os.getgroups()),
    "devices": sorted(os.listdir("/dev")), "proc": os.listdir("/proc"), "host": os.uname().nodename,
    "null": Path("/dev/null").write_text("x"),
    "write": tried(lambda: Path("/workspace/written").write_text("x")),
    "write root": tried(lambda: Path("/usr/x").write_text("x")),
    "make device": tried(lambda: os.mknod("/tmp/d", stat.S_IFCHR | 0o666, os.makedev(1, 3))),
    "set-uid": tried(lambda: os.open("/workspace/bit", os.O_CREAT | os.O_WRONLY, 0o4755)),
    "chmod set-uid": tried(lambda: os.chmod("/workspace", 0o4777)),
    "internet": tried(socket.socket), "local": tried(lambda: socket.socket(socket.AF_UNIX)),
    "pair": tried(socket.socketpair),
}))
"""
RUN_SHELL = """
import subprocess, sys
from pathlib import Path
from sandbox.images.image import find_image
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import JailProfile, command
nsjail_path, hash_, images, workspace, writable, source = sys.argv[1:]
nsjail = Nsjail.find(nsjail_path)
Path(workspace).mkdir()
Path(workspace).chmod(0o777)
profile = JailProfile(nsjail, find_image(hash_, Path(images)), kind="shell",
                  workspace=Path(workspace), writable=writable == "writable")
line = command(nsjail, profile.write(Path("profiles")), "/usr/bin/python3", "-S", "-c", source)
done = subprocess.run(line, env={"KEY": "x"})
sys.exit(done.returncode)
"""


@promise("sandbox:shell")
@pytest.mark.parametrize("writable", ["writable", "readable"])
@pytest.mark.parametrize("user", sorted(USERS))
def test_a_shell_starts_processes_and_writes_only_where_it_may(user, writable, reachable):
    folder = reachable / "worker"
    built = image()
    told = USERS[user](
        RUN_SHELL,
        str(readable_nsjail().path),
        built.hash,
        str(built.path.parents[1]),
        "here",
        writable,
        SHELL,
        folder=folder,
    )
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == {
        "started": "42\n",
        "environment": {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "TZ": "UTC0"},
        "folder": "/workspace",
        "groups": 0,
        "devices": ["full", "null", "random", "urandom", "zero"],
        "proc": [],
        "host": "jail",
        "null": 1,
        "write": "done" if writable == "writable" else "Read-only file system",
        "write root": "Read-only file system",
        "make device": os.strerror(errno.ENOSYS),
        "set-uid": os.strerror(errno.ENOSYS),
        "chmod set-uid": os.strerror(errno.ENOSYS),
        "internet": "Operation not permitted",
        "local": "Operation not permitted",
        "pair": "done",
    }
    assert [path.name for path in (folder / "here").iterdir()] == (["written"] if writable == "writable" else [])


RESERVED = """
import mmap

def mapped(size, flags=0, **more):
    try:
        return len(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flags, **more)) >> 20
    except OSError as error:
        return error.strerror

try:
    taken = len(bytearray(512 << 20))
except MemoryError:
    taken = "MemoryError"
# The last one is of a stack that grows, and counts as no data.
print([mapped(16 << 30, prot=0), mapped(256 << 20), mapped(512 << 20), taken, mapped(1 << 20, flags=0x100)])
"""


@promise("sandbox:reserved")
@pytest.mark.parametrize("kind", ["code", "shell"])
def test_a_command_may_reserve_more_memory_than_it_may_take_and_a_program_may_not(kind, reachable):
    limits = (Limits() if kind == "code" else shell_limits()).model_copy(update={"memory_mb": 512})
    start = JailProfile(Nsjail.find(), image(), kind=kind, limits=limits).start(reachable)
    line = [*start, "--", *interpreter_arguments()[:-1], "-c", RESERVED]
    done = subprocess.run(line, env={}, capture_output=True, text=True, check=False, timeout=150)
    full, unknown = os.strerror(errno.ENOMEM), os.strerror(errno.ENOSYS)
    seen = [16 << 10, 256, full, "MemoryError", unknown] if kind == "shell" else [full, 256, full, "MemoryError", 1]
    assert done.stdout == f"{seen}\n", done.stderr


FORKS = """
import os, time
try:
    for n in range(9):
        if os.fork() == 0:
            time.sleep(9)
except OSError as error:
    print(n, error.strerror)
"""


def run(profile: Path, source: str) -> subprocess.CompletedProcess[str]:
    line = command(Nsjail.find(), profile, "/usr/bin/python3", "-s", "-S", "-c", source)
    return subprocess.run(line, env={}, capture_output=True, text=True, check=False, timeout=150)


@pytest.fixture
def cgroups():
    """Cgroups of these tests, given back after it."""
    found = find_cgroups()
    yield found
    release_cgroups(found)


@promise("sandbox:cgroups")
def test_cgroups_bound_the_memory_and_the_processes_of_a_whole_jail(cgroups, reachable):
    if not (cgroups.memory and cgroups.pids):
        pytest.skip(f"this user has no cgroups to divide: {'; '.join(cgroups.missing)}")
    limits = shell_limits().model_copy(update={"memory_mb": 1024, "processes": 5, "tmp_mb": 16})
    profile = JailProfile(Nsjail.find(), image(), kind="shell", cgroups=cgroups, limits=limits).write(reachable)
    text = profile.read_text(encoding="utf-8")
    # The limits of single processes are wider here than the caps, so that it is the caps that are met.
    text = re.sub(
        "rlimit_nproc: .*", "rlimit_nproc: 64", re.sub("cgroup_mem_max: .*", "cgroup_mem_max: 67108864", text)
    )
    profile.write_text(text, encoding="utf-8")
    assert run(profile, FORKS).stdout == "4 Resource temporarily unavailable\n"
    assert run(profile, "print(len(bytearray(32 << 20)))").stdout == "33554432\n"
    assert run(profile, "print(len(bytearray(256 << 20)))").returncode == 128 + 9
    for folder in (cgroups.memory, cgroups.pids):
        assert not [path for path in folder.iterdir() if path.is_dir()]


def tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="ascii")


def machine(root: Path, own: str) -> Path:
    """What the kernel says of a process in this cgroup, where version 2 is mounted at `groups`."""
    tree(root / "proc", {"mounts": f"cgroup2 {root}/groups cgroup2 rw 0 0\n", "cgroup": f"0::{own}\n"})
    return root / "proc"


@promise("sandbox:cgroups-divided")
def test_a_unit_whose_worker_is_in_a_subgroup_is_the_workers_to_divide(tmp_path):
    # Version 2 is not delegated where these tests usually run, so files stand in for what the kernel shows. The kernel
    # fills a new folder by itself; here all that could be the next one are filled before.
    unit = tmp_path / "groups/system.slice/backstay.service"
    folders = [unit, *(unit / f"backstay-{os.getpid()}.{number}" for number in range(1000))]
    tree(tmp_path, {f"{folder}/cgroup.subtree_control": "cpu memory pids\n" for folder in folders})
    found = find_cgroups(proc=machine(tmp_path, "/system.slice/backstay.service/worker"))
    assert found.version == 2
    assert found.folder in folders[1:]
    assert found.folder == found.memory == found.pids == found.cpu


@promise("sandbox:cgroups-divided")
@pytest.mark.parametrize(
    "own", ["/user.slice/session-1.scope", "/system.slice/backstay.service", "/"], ids=["session", "unit", "root"]
)
def test_a_group_that_holds_the_worker_itself_is_not_divided(own, tmp_path):
    tree(tmp_path / "groups" / own.lstrip("/"), {"cgroup.subtree_control": "\n"})
    found = find_cgroups(proc=machine(tmp_path, own))
    assert found.version == 0
    assert [line.partition(":")[0] for line in found.missing] == ["memory", "pids", "cpu"]


@promise("sandbox:cgroups-left")
def test_what_a_killed_worker_left_is_removed_by_the_next_and_its_own_when_it_gives_it_back():
    mine = find_cgroups()
    if not mine.pids:
        pytest.skip(f"this user has no cgroups to divide: {'; '.join(mine.missing)}")
    dead = subprocess.Popen(("true",))
    dead.wait()
    left = mine.pids.with_name(f"backstay-{dead.pid}")
    (left / "NSJAIL.1").mkdir(parents=True)
    other = find_cgroups()
    release_cgroups(other)
    assert other.pids != mine.pids
    assert not other.pids.exists()
    assert not left.exists()
    assert mine.pids.exists()
    release_cgroups(mine)
    assert not mine.pids.exists()


@promise("sandbox:cgroups-none")
def test_without_any_cgroup_the_reason_is_given(tmp_path):
    found = find_cgroups(proc=tmp_path)
    assert found.version == 0
    assert found.folder is None
    assert len(found.missing) == 3
