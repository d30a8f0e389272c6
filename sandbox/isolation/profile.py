"""Profiles: what confines one kind of jail, rendered as one nsjail configuration file named by its content."""

import hashlib
import os
import platform
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from backstay.errors import IsolationUnavailable
from sandbox.images.image import Image
from sandbox.isolation.cgroups import Cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.limits import Limits, shell_limits

ProfileKind = Literal["code", "shell"]
"""`code` confines programs of the model, `shell` commands that start other programs."""

RUNNER = "/usr/lib/backstay/runner.py"
SELF_TEST = "/usr/lib/backstay/self_test.py"

_ENVIRONMENT = MappingProxyType(
    {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC0"}  # noqa: S108 - the jail's own
)
_SHELL_ENVIRONMENT = MappingProxyType(
    {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "TZ": "UTC0"}  # noqa: S108 - the jail's own
)
# A jail has one thread. On x86-64, what sines and sums are made of depends on the processor unless it is said here.
_DATA_ENVIRONMENT = MappingProxyType({"OPENBLAS_NUM_THREADS": "1"})
_X86_ENVIRONMENT = MappingProxyType({"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4"})
_X86_DATA_ENVIRONMENT = MappingProxyType({"NPY_ENABLE_CPU_FEATURES": "X86_V2", "OPENBLAS_CORETYPE": "Nehalem"})

_TEMPLATES = Path(__file__).parent
_ROOT_UIDS = 200_000
_FEW_UIDS = 60_000
_FEW = 1000


def outside_uid(slot: int = 0) -> int:
    """Return the user id that a jail of this slot has outside: its own when the worker is root, else the worker's."""
    if os.geteuid() != 0:
        return os.geteuid()
    # Inside a container only a part of the ids may exist.
    chosen = _ROOT_UIDS + slot
    return chosen if _exists(chosen) else _FEW_UIDS + slot % _FEW


def render_profile(
    nsjail: Nsjail,
    image: Image,
    *,
    folder: Path,
    kind: ProfileKind = "code",
    limits: Limits | None = None,
    outside_uid: int | None = None,
    cgroups: Cgroups | None = None,
    program: str = RUNNER,
    workspace: Path | None = None,
    writable: bool = False,
) -> Path:
    """Write the configuration file of such a jail into the folder, named by its content, and return its path."""
    text = profile_text(
        nsjail,
        image,
        kind=kind,
        limits=limits,
        outside_uid=outside_uid,
        cgroups=cgroups,
        program=program,
        workspace=workspace,
        writable=writable,
    )
    folder.mkdir(parents=True, exist_ok=True)
    place = folder.resolve() / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.cfg"
    with suppress(OSError):
        if place.read_text(encoding="utf-8") == text:
            return place
    beside = place.with_name(f".{place.name}-{secrets.token_hex(4)}")
    beside.write_text(text, encoding="utf-8")
    beside.rename(place)
    return place


def profile_text(
    nsjail: Nsjail,
    image: Image,
    *,
    kind: ProfileKind = "code",
    limits: Limits | None = None,
    outside_uid: int | None = None,
    cgroups: Cgroups | None = None,
    program: str = RUNNER,
    workspace: Path | None = None,
    writable: bool = False,
    outside_gid: int | None = None,
    machine: str | None = None,
) -> str:
    """Return the configuration of such a jail; the machine is this one unless another is named."""
    uid = _own_uid() if outside_uid is None else outside_uid
    # Only root may give a jail a group that is not its own.
    gid = (uid if os.geteuid() == 0 else os.getegid()) if outside_gid is None else outside_gid
    return (
        _templates()
        .get_template(f"{kind}.cfg.j2")
        .render(
            nsjail=nsjail,
            image=image,
            kind=kind,
            limits=limits or (Limits() if kind == "code" else shell_limits()),
            outside_uid=uid,
            outside_gid=gid,
            cgroups=cgroups or Cgroups(),
            cwd="/workspace" if workspace else "/tmp",  # noqa: S108 - the jail's own
            log_level="FATAL",
            policy=_policy(kind, machine or platform.machine()),
            environment=environment(kind, image, machine=machine),
            arguments=interpreter_arguments(program)[1:],
            workspace=workspace and workspace.resolve(),
            writable=writable,
        )
    )


def environment(kind: ProfileKind, image: Image, *, machine: str | None = None) -> Mapping[str, str]:
    """Return all that a jail of this kind finds in its environment."""
    if kind == "shell":
        return _SHELL_ENVIRONMENT
    x86, data = (machine or platform.machine()) == "x86_64", image.kind == "data"
    parts = (
        _ENVIRONMENT,
        _X86_ENVIRONMENT if x86 else {},
        _DATA_ENVIRONMENT if data else {},
        _X86_DATA_ENVIRONMENT if x86 and data else {},
    )
    return {name: value for part in parts for name, value in part.items()}


def interpreter_arguments(program: str = RUNNER) -> tuple[str, ...]:
    """Return the command line inside a jail: the interpreter without anything that could differ between machines."""
    return ("/usr/bin/python3", "-s", "-S", "-P", "-B", "-X", "utf8", program)


def command(nsjail: Nsjail, profile: Path, *arguments: str) -> list[str]:
    """Return the command line that starts such a jail; arguments say what a shell jail runs."""
    return [str(nsjail.path), "--config", str(profile), *(("--", *arguments) if arguments else ())]


def _own_uid() -> int:
    return outside_uid()


def _exists(uid: int) -> bool:
    try:
        lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    except OSError:
        return True
    spans = [[int(number) for number in line.split()] for line in lines]
    return any(first <= uid < first + count for first, _, count in spans)


@cache
def _policy(kind: ProfileKind, machine: str) -> tuple[str, ...]:
    """Return the system call policy for the machine, without its comments."""
    try:
        lines = (_TEMPLATES / f"{kind}.policy.{machine}").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise IsolationUnavailable(
            cause=f"there is no system call policy for machines of type {machine}",
            fix="run the sandbox worker on x86_64 or aarch64",
        ) from None
    bare = (line.partition("//")[0].strip() for line in lines)
    return tuple(line for line in bare if line)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - no markup
    )
    templates.filters["text"] = _text
    return templates


def _text(value: Any) -> str:
    """Quote a value for a text protocol buffer, byte by byte, so that no path can end the quotes."""
    plain = (
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in os.fsencode(str(value))
    )
    return f'"{"".join(plain)}"'
