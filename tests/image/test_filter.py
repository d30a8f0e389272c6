"""deploy/seccomp.json, loaded into the kernel: jails need what it allows, and keep every property under it."""

import json
import os
import platform
import sys
from pathlib import Path

import pytest

from sandbox.images.image import build_image
from tests.image.containers import Container, Mount, ran
from tests.image.filters import compiled
from tests.requirements import promise
from tests.sizes import spread

HOUSE = Path(__file__).resolve().parents[2]
PROFILE = HOUSE / "deploy/seccomp.json"
USER = (10001, 10001)
EXAMINE = """
import asyncio, json
from pathlib import Path
from sandbox.programs.sandbox import examine
found = asyncio.run(examine(nsjail=None, home=Path("/home"), image="python")).properties
print(json.dumps([[each.name, each.cause] for each in found if each.required and not each.proven]))
print(open("/proc/self/status").read())
"""
CALLS = """
import ctypes, json, os, sys
libc, ended = ctypes.CDLL(None, use_errno=True), {}
for name, number in json.loads(sys.argv[1]).items():
    child = os.fork()
    if child == 0:
        ctypes.set_errno(0)
        libc.syscall(number, 0, 0, 0, 0, 0, 0)
        os._exit(ctypes.get_errno())
    ended[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(ended))
"""
ATTACKS = {
    "ptrace": 101,
    "process_vm_readv": 310,
    "kcmp": 312,
    "keyctl": 250,
    "bpf": 321,
    "perf_event_open": 298,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "setns": 308,
    "unshare": 272,
    "chroot": 161,
    "open_by_handle_at": 304,
    "init_module": 175,
    "kexec_load": 246,
    "reboot": 169,
    "swapon": 167,
    "quotactl": 179,
    "mount_setattr": 442,
    "fsopen": 430,
    "open_tree": 428,
    "memfd_secret": 447,
}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def inside(profile: Path, home: Path, *words: str) -> str:
    """Run Python with this checkout's code as the user of the image, without rights and under the filter."""
    seen = [HOUSE, Path(sys.base_prefix), Path(sys.prefix)]
    closed = [parent for place in seen for parent in reversed(place.parents) if not parent.stat().st_mode & 0o001]
    return ran(
        Container(
            lower=[Path("/")],
            command=[sys.executable, *words],
            environment={"PATH": os.defpath, "PYTHONPATH": str(HOUSE), "PYTHONDONTWRITEBYTECODE": "1"},
            mounts=[*(Mount(place, str(place), read_only=True) for place in seen), Mount(home, "/home")],
            opened=[str(place) for place in closed],
            tmpfs=["/tmp"],
            read_only=True,
            user=USER,
            cap_drop=["ALL"],
            no_new_privs=True,
            filter=compiled(profile),
        ),
        seconds=100,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    for built in (folder, *build_all(folder)):
        os.chown(built, *USER)
    return folder


def build_all(folder: Path) -> list[Path]:
    build_image("python", folder / "images")
    return [folder / "images", *(folder / "images").iterdir()]


def unproven_in(said: str) -> list[list[str]]:
    return json.loads(next(line for line in said.splitlines() if line.startswith("[")))


@promise("deployment:filter")
def test_a_jail_has_every_property_under_the_filter_without_any_right_of_an_administrator(home):
    said = inside(PROFILE, home, "-c", EXAMINE)

    assert unproven_in(said) == []
    state = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
    assert state["Uid"].split() == ["10001"] * 4
    assert {state[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (state["NoNewPrivs"], state["Seccomp"]) == ("1", "2")


@promise("deployment:filter-least")
@pytest.mark.parametrize("call", spread(["mount", "pivot_root", "sethostname", "umount2", "personality"], 2))
def test_no_jail_starts_without_one_of_the_calls_that_are_allowed_for_it(call, home, tmp_path):
    profile = json.loads(PROFILE.read_text(encoding="utf-8"))
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name != call]
    less = tmp_path / "less.json"
    less.write_text(json.dumps(profile), encoding="utf-8")

    unproven = unproven_in(inside(less, home, "-c", EXAMINE))

    assert unproven[0][0] == "starts"
    assert call.rstrip("2") in unproven[0][1]


@promise("deployment:filter-attacks")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
def test_what_only_an_attack_asks_for_is_refused_by_the_filter(home):
    ended = json.loads(inside(PROFILE, home, "-c", CALLS, json.dumps(ATTACKS)))

    # 1 is EPERM. Without rights the kernel itself refuses some of these with the same word, but not all.
    assert ended == dict.fromkeys(ATTACKS, 1)


@promise("deployment:filter-default")
def test_the_filter_allows_nothing_by_default_and_knows_both_machines():
    profile = json.loads(PROFILE.read_text(encoding="utf-8"))

    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {known["architecture"] for known in profile["archMap"]} == {"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"}
    # Calls of 32 bits pass no list that is written for 64.
    assert not any(known["subArchitectures"] for known in profile["archMap"])
    names = [name for rule in profile["syscalls"] for name in rule["names"] if not rule.get("args")]
    assert len(names) == len(set(names))
