"""The self-test proves each property on real jails, as root and without rights, and finds each weakness."""

import asyncio
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from backstay.errors import IsolationUnavailable
from sandbox.images.image import Image, build_image
from sandbox.isolation.cause import likely_cause
from sandbox.isolation.cgroups import Cgroups, find_cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import SELF_TEST, JailProfile, command
from sandbox.isolation.self_test import RULES, SelfTestResult, check_profile, run_self_test, run_workspace_self_test
from sandbox.limits import shell_limits
from sandbox.programs.sandbox import examine as examine_sandbox
from sandbox.workspaces.owner import prepare
from tests.requirements import promise
from tests.sandbox.machine_code import CALLS, ENOSYS, EPERM, KILLED, OLD_CALLS
from tests.sandbox.places import HOUSE, as_nobody, as_self, image, readable_nsjail
from tests.sizes import spread

USERS = {"self": as_self, "nobody": as_nobody}
REQUIRED = ["starts", "has the image it is named by", *(name for name, _, _ in RULES["code"])]
x86_only = pytest.mark.skipif(platform.machine() != "x86_64", reason="the machine code is that of x86-64")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up rights that it has")

PROVE = """
import asyncio, json, sys
from pathlib import Path
from sandbox.images.image import find_image
from sandbox.isolation.self_test import run_self_test
from sandbox.isolation.nsjail import Nsjail
nsjail, hash_, images, profiles = sys.argv[1:]
result = asyncio.run(run_self_test(Nsjail.find(nsjail), find_image(hash_, Path(images)), Path(profiles)))
print(json.dumps(result.plain()))
"""


def unproven(result: SelfTestResult) -> dict[str, str]:
    return {prop.name: prop.cause for prop in result.properties if prop.required and not prop.proven}


def arguments(nsjail: Nsjail, built: Image, profiles: str = "profiles") -> tuple[str, ...]:
    return str(nsjail.path), built.hash, str(built.path.parents[1]), profiles


@promise("sandbox:proven")
@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["python", "data"])
@pytest.mark.parametrize("user", sorted(USERS))
def test_every_property_is_proven_for_any_user(user, kind, reachable):
    folder = reachable / "worker"
    done = USERS[user](PROVE, *arguments(readable_nsjail(), image(kind)), folder=folder)
    assert done.returncode == 0, done.stderr
    result = SelfTestResult.model_validate_json(done.stdout)
    assert unproven(result) == {}
    assert [prop.name for prop in result.properties if prop.required] == REQUIRED
    result.require_isolation()


async def weakened(pattern: str, replacement: str, folder: Path, *, built: Image | None = None) -> SelfTestResult:
    """The self-test of a profile that differs from the usual one in one line."""
    profile = JailProfile(Nsjail.find(), built or image(), program=SELF_TEST)
    weak, count = re.subn(pattern, replacement, profile.text(), flags=re.MULTILINE)
    assert count, f"the profile says nothing like {pattern}"
    (folder / "weak.cfg").write_text(weak, encoding="utf-8")
    return await check_profile(profile, command(profile.nsjail, folder / "weak.cfg"))


UNFILTERED = (
    "passes every system call through a filter",
    "dies of an attack on the kernel",
    "starts no process and no thread",
    "has no network of the machine",
    "makes no memory executable",
    "makes no link, no device, no signal",
)
BOUNDED = "is bounded in memory, processor time, files and processes"
CLEAN = "finds nothing of the worker's environment"
WEAKNESSES = {
    "no filter at all": (r"^seccomp_string.*\n", "", UNFILTERED),
    "one deadly call is let through": ("SYSCALL\\[434\\], ", "", "dies of an attack on the kernel"),
    "code may be written": (r"&& \(flags & 0x20\) == 0\)", "|| flags != 0)", "makes no memory executable"),
    "files in /tmp may be executed": ("noexec: true", "noexec: false", "executes nothing that it wrote"),
    "the network of the machine": ("clone_newnet: true", "clone_newnet: false", "has no network of the machine"),
    "the processes of the machine": ("clone_newpid: true", "clone_newpid: false", "has namespaces of its own"),
    "the name of the machine": ("clone_newuts: true", "clone_newuts: false", "has namespaces of its own"),
    "capabilities": ("keep_caps: false", "keep_caps: true", "holds no capability"),
    "another user inside": ('inside_id: "1000"', 'inside_id: "0"', "runs as a user without rights"),
    "random addresses": ("persona_addr_no_randomize: true", "", "has the same hashes and addresses each time"),
    "random hashes": ("PYTHONHASHSEED=0", "PYTHONHASHSEED=random", "has the same hashes and addresses each time"),
    "something in the environment": ("PYTHONHASHSEED=0", r'\g<0>"\nenvar: "KEY=x', CLEAN),
    "memory without bound": ("rlimit_as: 512", "rlimit_as: 4096", BOUNDED),
    "time without bound": ("rlimit_cpu: 20", "rlimit_cpu: 900", BOUNDED),
    "space without bound": ("size=16m", "size=64m", "is bounded in what it writes to /tmp"),
    "files without bound": ("nr_inodes=1024", "nr_inodes=9999", "is bounded in what it writes to /tmp"),
    "a file of the machine": (
        r'^mount \{ dst: "/tmp"',
        r'mount { src: "/usr/share/zoneinfo" dst: "/dev" is_bind: true }\n\g<0>',
        "sees no process, no device and no file of the machine",
    ),
}


@promise("sandbox:proven")
@pytest.mark.parametrize("weakness", spread(sorted(WEAKNESSES), 4))
async def test_a_weaker_profile_is_seen_for_what_it_is(weakness, reachable):
    pattern, replacement, named = WEAKNESSES[weakness]
    names = {named} if isinstance(named, str) else set(named)
    result = await weakened(pattern, replacement, reachable)
    assert names <= unproven(result).keys()
    with pytest.raises(IsolationUnavailable) as refused:
        result.require_isolation()
    assert names <= set(refused.value.facts["missing"])


@promise("sandbox:proven")
async def test_a_root_that_can_be_written_is_seen(reachable):
    shutil.copytree(image().path, reachable / "root", symlinks=True)
    copy = image().model_copy(update={"path": reachable / "root"})
    result = await weakened('(dst: "/" is_bind: true is_dir: true rw:) false', r"\1 true", reachable, built=copy)
    assert "writes nothing outside /tmp" in unproven(result)


@promise("sandbox:proven")
async def test_a_shell_whose_processes_may_take_as_much_memory_as_they_reserve_is_seen(reachable):
    workspace = reachable / "workspace"
    workspace.mkdir()
    prepare(workspace)
    profile = JailProfile(Nsjail.find(), image("shell"), kind="shell", workspace=workspace)
    result = await check_profile(profile, command(profile.nsjail, profile.write(reachable)))
    assert unproven(result) == {BOUNDED: "DATA is [-1, -1], not [2147483648, 2147483648]"}


@promise("sandbox:proven")
async def test_an_image_that_was_changed_is_seen(reachable):
    shutil.copytree(image().path, reachable / "root", symlinks=True)
    with (reachable / "root/usr/lib/backstay/runner.py").open("a", encoding="utf-8") as opened:
        opened.write("\n")
    copy = image().model_copy(update={"path": reachable / "root"})
    result = await run_self_test(Nsjail.find(), copy, reachable)
    assert list(unproven(result)) == ["has the image it is named by"]


@pytest.fixture(scope="module")
def calls(tmp_path_factory) -> dict[tuple[str, str, str], dict[str, int]]:
    """How each system call ended, by user, kind of jail, and whether the filter was on; asked for once."""
    return {}


def ended(calls, user: str, kind: str, filtered: str, reachable: Path) -> dict[str, int]:
    key = user, kind, filtered
    if key not in calls:
        source = (HOUSE / "tests/sandbox/machine_code.py").read_text(encoding="utf-8")
        folder = reachable / f"worker-{kind}-{filtered}"
        done = USERS[user](source, str(readable_nsjail().path), kind, filtered, folder=folder)
        assert done.returncode == 0, done.stderr
        calls[key] = json.loads(done.stdout)
    return calls[key]


@promise("sandbox:system-calls")
@pytest.mark.thorough
@x86_only
@pytest.mark.parametrize("user", sorted(USERS))
def test_calls_by_machine_code_are_deadly_or_not_permitted_to_programs(user, calls, reachable):
    told = ended(calls, user, "code", "filtered", reachable)
    assert told.keys() == CALLS.keys() | OLD_CALLS.keys()
    assert {name: end for name, end in told.items() if end not in (KILLED, EPERM)} == {}
    deadly = {name for name, end in told.items() if end == KILLED}
    assert {"ptrace", "unshare_user", "bpf", "io_uring_setup", "mount", "setns", *OLD_CALLS} <= deadly
    assert {"clone", "clone3", "fork", "vfork", "socket_internet", "getpid_x32"} <= told.keys() - deadly


@promise("sandbox:system-calls")
@x86_only
def test_the_same_calls_succeed_without_the_filter_so_that_it_is_what_stops_them(calls, reachable):
    told = ended(calls, "self", "code", "unfiltered", reachable)
    done = {name for name, end in told.items() if end == 0}
    assert {
        "ptrace",
        "unshare_user",
        "clone_user",
        "personality",
        "socket_internet",
        "fork",
        "mmap_writable_code",
    } <= done
    assert len(done) >= 30
    assert KILLED not in told.values()


@promise("sandbox:system-calls")
@pytest.mark.thorough
@x86_only
@pytest.mark.parametrize("user", sorted(USERS))
def test_shells_may_start_processes_but_no_call_leads_out_of_their_jail(user, calls, reachable):
    told = ended(calls, user, "shell", "filtered", reachable)
    allowed = {"clone", "clone_thread", "fork", "vfork", "socketpair", "kill", "tgkill", "inotify_init1"}
    assert {name: told[name] for name in allowed} == dict.fromkeys(allowed, 0)
    programs = ended(calls, user, "code", "filtered", reachable)
    deadly = {name for name, end in programs.items() if end == KILLED}
    assert {name: told[name] for name in deadly} == dict.fromkeys(deadly, KILLED)
    refused = {
        "clone_user", "clone3", "socket_unix", "socket_internet", "socket_internet_6", "socket_netlink", "socket_vsock",
        "seccomp", "setrlimit", "prlimit64", "memfd_create", "personality", "mknod", "steal_input", "getpid_x32",
    }  # fmt: skip
    assert {told[name] for name in refused} <= {EPERM, ENOSYS}


async def fault(nsjail: Nsjail, built: Image, folder: Path, cgroups: Cgroups | None = None) -> tuple[str, str]:
    """The cause and the fix when no jail starts."""
    result = await run_self_test(nsjail, built, folder, cgroups=cgroups)
    first = result.properties[0]
    assert (first.name, first.proven) == ("starts", False)
    assert not [prop for prop in result.properties if prop.proven and prop.required and prop.name != REQUIRED[1]]
    return first.cause, first.fix


@promise("workers:closed-folder")
async def test_a_folder_that_is_closed_above_the_home_keeps_no_jail_of_commands_from_what_it_needs(reachable):
    closed = reachable / "closed"
    home, workspace = closed / "home", closed / "work" / "one"
    home.mkdir(parents=True)
    workspace.mkdir(parents=True)
    closed.chmod(stat.S_IRWXU)
    shell = await asyncio.to_thread(build_image, "shell", home / "images")
    prepare(workspace)
    caps = {"limits": shell_limits(), "cgroups": find_cgroups()}
    commands = await run_workspace_self_test(Nsjail.find(), shell, home / "jails", workspace, **caps)

    assert unproven(commands) == {}
    assert stat.S_IMODE(closed.stat().st_mode) == stat.S_IRWXU


@promise("workers:closed-folder")
@pytest.mark.thorough
async def test_a_folder_that_is_closed_above_the_home_keeps_no_jail_of_programs_from_what_it_needs(reachable):
    home = reachable / "closed" / "home"
    home.mkdir(parents=True)
    home.parent.chmod(stat.S_IRWXU)
    programs = await examine_sandbox(nsjail=None, home=home, image="python")

    assert unproven(programs) == {}
    assert stat.S_IMODE(home.parent.stat().st_mode) == stat.S_IRWXU


@promise("sandbox:causes")
async def test_an_image_in_a_closed_folder_is_named_with_that_folder(reachable):
    closed = reachable / "closed"
    (closed / "root").mkdir(parents=True)
    built = image().model_copy(update={"path": closed / "root"})
    closed.chmod(0)
    try:
        # What nsjail says where the worker may not open a way.
        cause, fix = likely_cause("[F] mount('/'): Permission denied", built, Cgroups(), root=True)
    finally:
        closed.chmod(stat.S_IRWXU)
    assert f"{closed} is closed to others" in cause
    assert fix == f"chmod o+x {closed}, or keep the images elsewhere"


@promise("sandbox:causes")
async def test_an_image_that_is_gone_is_named(reachable):
    built = image().model_copy(update={"path": reachable / "gone/root"})
    cause, fix = await fault(Nsjail.find(), built, reachable)
    assert f"the image at {reachable / 'gone/root'} is gone" in cause
    assert fix == "run `backstay image build`"


@promise("sandbox:causes")
async def test_a_cgroup_folder_that_is_missing_is_named(reachable):
    cgroups = Cgroups(version=1, pids=reachable / "nothing/here")
    cause, fix = await fault(Nsjail.find(), image(), reachable, cgroups)
    assert f"{reachable / 'nothing/here'} is missing" in cause
    assert "restart the worker" in fix


@promise("sandbox:causes")
async def test_an_nsjail_that_does_not_run_here_is_named(reachable):
    broken = reachable / "nsjail"
    broken.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100))
    broken.chmod(0o755)
    cause, fix = await fault(Nsjail.find(str(broken)), image(), reachable)
    assert "the nsjail binary does not run on this machine" in cause
    assert "install backstay[sandbox]" in fix


@promise("sandbox:causes")
async def test_a_policy_that_nsjail_does_not_understand_is_named(reachable):
    result = await weakened("ptrace, ", "no_such_call, ", reachable)
    assert "does not understand the system call policy" in result.properties[0].cause


def result_under(wrapper: list[str], folder: Path) -> SelfTestResult:
    """The self-test of a worker that is started by the wrapper, which takes rights away."""
    command = [*wrapper, sys.executable, "-c", PROVE, *arguments(Nsjail.find(), image(), str(folder / "profiles"))]
    environment_ = {"PYTHONPATH": str(HOUSE), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(
        command, cwd=HOUSE, env=environment_, capture_output=True, text=True, check=False, timeout=150
    )
    assert done.returncode == 0, done.stderr
    return SelfTestResult.model_validate_json(done.stdout)


@promise("sandbox:causes")
def test_switched_off_user_namespaces_are_named(reachable):
    # Inside a user namespace of its own, the switch is the namespace's own and no other process sees it.
    off = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"',
        "sh",
    ]
    if subprocess.run([*off, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may make no user namespace to switch them off in")
    first = result_under(off, reachable).properties[0]
    assert first.cause.startswith("user namespaces are switched off (user.max_user_namespaces is 0)")
    assert first.fix == "sysctl -w user.max_user_namespaces=10000"


@promise("sandbox:causes")
@x86_only
def test_a_containers_filter_that_forbids_namespaces_is_named(reachable):
    policy = (
        "ERRNO(1) { unshare, clone(f, a, b, c, d) { (f & 0x10000000) != 0 } } ERRNO(38) { SYSCALL[435] } DEFAULT ALLOW"
    )
    (reachable / "container.cfg").write_text(
        "mode: ONCE log_level: FATAL keep_env: true disable_rl: true mount_proc: false\n"
        "clone_newnet: false clone_newuser: false clone_newns: false clone_newpid: false clone_newipc: false\n"
        f'clone_newuts: false clone_newcgroup: false cwd: "{HOUSE}"\nseccomp_string: "{policy}"\n',
        encoding="utf-8",
    )
    first = result_under(
        [str(Nsjail.find().path), "--config", str(reachable / "container.cfg"), "--"], reachable
    ).properties[0]
    assert first.cause.startswith("the container's own system call filter forbids namespaces")


@promise("sandbox:causes")
@root_only
def test_root_that_may_not_change_users_is_named(reachable):
    wrapper = ["setpriv", "--bounding-set=-setuid,-setgid", "--inh-caps=-all"]
    first = result_under(wrapper, reachable).properties[0]
    assert first.cause.startswith("the worker may not give the jail a user of its own")
    assert "CAP_SETUID" in first.fix


CLONE = "clone(flags=CLONE_NEWUSER) failed: "
SWITCHES = {
    "only root may make": ("kernel/unprivileged_userns_clone 0", CLONE + "Operation not permitted"),
    "AppArmor takes the rights": (
        "kernel/apparmor_restrict_unprivileged_userns 1",
        "mount('/', ...): Permission denied",
    ),
    "user namespaces are switched off": ("user/max_user_namespaces 0", CLONE + "No space left"),
    "the limit of namespaces is reached": ("user/max_user_namespaces 9", CLONE + "No space left"),
    "mounting is refused inside a user": ("user/max_user_namespaces 9", "mount('none'): Operation not permitted"),
    "nsjail ended before the jail answered: something": ("user/max_user_namespaces 9", "something quite new failed"),
    "nsjail ended before the jail answered: nothing": ("user/max_user_namespaces 9", ""),
}


@promise("sandbox:causes")
@pytest.mark.parametrize("cause", sorted(SWITCHES))
def test_switches_of_other_kernels_are_named(cause, tmp_path):
    switch, log = SWITCHES[cause]
    name, value = switch.split()
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(value + "\n", encoding="ascii")
    line = f"[W][2026-11-22T05:52:12+0000][3505] runChild():43 {log}\n" if log else ""
    said, fix = likely_cause(line, image(), Cgroups(), sysctl=tmp_path, root=False)
    assert said.startswith(cause)
    assert fix
    assert "\n" not in said
