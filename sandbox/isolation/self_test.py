"""Check that jails confine what runs in them: test every property in real jails before any program runs.

Here stand the properties too: how each is seen, and what to do without it.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from backstay.errors import IsolationUnavailable
from backstay.frozen import Frozen
from sandbox.images.image import Image, content_hash
from sandbox.isolation.cause import likely_cause
from sandbox.isolation.cgroups import Cgroups
from sandbox.isolation.evidence import DEADLY, NAMESPACES, Evidence, gather_evidence
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import SELF_TEST, Profile, ProfileKind, interpreter_arguments
from sandbox.limits import Limits

_STARTS = "starts"
_IMAGE = "has the image it is named by"
_CAPS = ("memory", "pids", "cpu")
_KILLED = 128 + 31
_MB = 1 << 20
_DEVICES = frozenset({"null", "zero", "full", "random", "urandom"})
_ACCOUNTS = frozenset({"passwd", "group", "nsswitch.conf"})
_ASK = "report this with the output of `backstay doctor`; programs stay switched off until it holds"
_KERNEL = "use a kernel with seccomp filters and namespaces, and an nsjail of version 3.4 or newer"


class Property(Frozen):
    """State whether a jail has one property; if not, why, and what an operator can do."""

    name: str
    proven: bool
    cause: str = ""
    fix: str = ""
    required: bool = True
    """Whether programs run without it."""


@dataclass(frozen=True)
class Case:
    """Hold what was seen of jails against the profile they had."""

    evidence: Evidence
    profile: Profile

    @property
    def inside(self) -> dict[str, Any]:
        """Return what the jail itself reported."""
        return self.evidence.first.inside or {}

    @property
    def status(self) -> dict[str, list[str]]:
        """Return what the kernel reports of the jailed process."""
        return self.evidence.first.outside.status


Check = Callable[[Case], list[str]]
"""Returns what speaks against a property."""
Rule = tuple[str, Check, str]
"""A name, its check, and the fix."""


def judge(evidence: Evidence, profile: Profile) -> list[Property]:
    """Return every property, proven or with the reason why not."""
    case = Case(evidence, profile)
    judged: list[Property] = []
    for name, check, fix in RULES[profile.kind]:
        try:
            faults = check(case)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            faults = [f"the self-test reported nothing usable about it ({type(error).__name__}: {error})"]
        judged.append(Property(name=name, proven=not faults, cause="; ".join(faults), fix=fix if faults else ""))
    return judged


def _differences(seen: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    return [f"{name} is {seen.get(name)!r}, not {value!r}" for name, value in wanted.items() if seen.get(name) != value]


def _attempts(**wanted: str) -> Check:
    def check(case: Case) -> list[str]:
        ended = case.inside["attempts"]
        return [
            f"{name} ended with {ended.get(name)}, not {error}"
            for name, error in wanted.items()
            if ended.get(name) != error
        ]

    return check


def _status(*names: str, value: str) -> Check:
    return lambda case: _differences(case.status, {name: [value] for name in names})


def _user(case: Case) -> list[str]:
    return [
        *_differences(case.inside, {"ids": [1000] * 4}),
        *_differences(case.status, {"Uid": [str(case.profile.outside_uid)] * 4}),
    ]


def _deadly(case: Case) -> list[str]:
    return _differences(case.evidence.deadly, dict.fromkeys(DEADLY, _KILLED))


def _namespaces(case: Case) -> list[str]:
    jailed, own = case.evidence.first.outside.namespaces, case.evidence.first.outside.own_namespaces
    return [
        f"the {name} namespace is {'that of the worker' if name in jailed else 'not to be seen'}"
        for name in NAMESPACES
        if name not in jailed or jailed[name] == own.get(name)
    ]


def _network(case: Case) -> list[str]:
    families = ("unix", "internet", "internet_6", "netlink", "vsock")
    faults = _attempts(**{f"socket_{family}": "EPERM" for family in families})(case)
    interfaces = case.evidence.first.outside.interfaces
    return faults if set(interfaces) <= {"lo"} else [*faults, f"there are network interfaces: {', '.join(interfaces)}"]


def _seen(**allowed: frozenset[str]) -> Check:
    """Check that nothing but this is in the folders of the system, by the folder's name."""

    def check(case: Case) -> list[str]:
        seen = [
            f"{path} holds {', '.join(sorted(more)[:5])}"
            for path, names in case.inside["seen"].items()
            if (more := set(names) - allowed.get(path.strip("/"), frozenset()))
        ]
        return [*seen, *_differences(case.inside, {"pid": 1, "host": "jail", "files": [0, 1, 2]})]

    return check


def _environment(case: Case) -> list[str]:
    arguments = list(interpreter_arguments(SELF_TEST))
    return _differences(case.inside, {"environment": dict(case.profile.environment), "arguments": arguments})


def _limits(*, raise_limit: str) -> Check:
    attempts = _attempts(memory="MemoryError", raise_limit=raise_limit)
    return lambda case: [*_numbers(case), *attempts(case)]


def _numbers(case: Case) -> list[str]:
    limits = case.profile.bounds
    wanted = {
        "AS": limits.memory_mb * _MB,
        "CORE": 0,
        "CPU": limits.cpu_s,
        "FSIZE": limits.file_mb * _MB,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
        "NOFILE": limits.files,
        "NPROC": limits.processes,
        "STACK": limits.stack_mb * _MB,
    }
    return _differences(case.inside["limits"], {name: [value, value] for name, value in wanted.items()})


def _space(case: Case) -> list[str]:
    limits, inside = case.profile.bounds, case.inside
    wanted = {"tmp_bytes": limits.tmp_mb * _MB, "tmp_inodes": limits.tmp_inodes}
    over = [] if inside["tmp_filled"] <= limits.tmp_mb else [f"{inside['tmp_filled']} MB could be written to /tmp"]
    return [*_differences(inside, wanted), *over]


def _same(case: Case) -> list[str]:
    first, second = case.inside, case.evidence.second.inside or {}
    return [f"{name} differs between two jails" for name in ("hash", "address") if first[name] != second.get(name)]


def _end(case: Case) -> list[str]:
    code, second = case.evidence.first.code, case.evidence.second
    faults = [] if code == 0 else [f"a jail whose input was closed ended with {code}"]
    if second.code is None or not second.gone:
        faults.append("a jail that was told to end did not, or left a process behind")
    return faults


_FIRST: tuple[Rule, ...] = (
    ("runs as a user without rights", _user, _KERNEL),
    ("holds no capability", _status("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", value="0" * 16), _KERNEL),
    ("gains no privilege by executing a file", _status("NoNewPrivs", value="1"), _KERNEL),
    ("has namespaces of its own", _namespaces, _KERNEL),
    ("has no network", _network, _ASK),
    (
        "passes every system call through a filter",
        _status("Seccomp", value="2"),
        "use a kernel with CONFIG_SECCOMP_FILTER",
    ),
    ("dies of an attack on the kernel", _deadly, _ASK),
)
_WRITES_ROOT = _attempts(write_root="EROFS", write_library="EROFS")
_BECOMES_ROOT: Rule = ("becomes no other user", _attempts(become_root="EPERM"), _ASK)
_BOUNDED = "is bounded in memory, processor time, files and processes"
_LAST: tuple[Rule, ...] = (
    ("is bounded in what it writes to /tmp", _space, _ASK),
    ("ends when it is told to", _end, _ASK),
    ("finds nothing of the worker's environment", _environment, _ASK),
)
RULES: Mapping[ProfileKind, tuple[Rule, ...]] = MappingProxyType(
    {
        "code": (
            *_FIRST,
            (
                "starts no process and no thread",
                _attempts(fork="EPERM", spawn="EPERM", thread="RuntimeError"),
                _ASK,
            ),
            ("writes nothing outside /tmp", _WRITES_ROOT, _ASK),
            ("executes nothing that it wrote", _attempts(execute="EACCES", memory_file="EPERM"), _ASK),
            ("makes no memory executable", _attempts(machine_code="EPERM"), _ASK),
            (
                "makes no link, no device, no signal",
                _attempts(link="EPERM", device="EPERM", kill="EPERM"),
                _ASK,
            ),
            _BECOMES_ROOT,
            ("sees no process, no device and no file of the machine", _seen(), _ASK),
            (_BOUNDED, _limits(raise_limit="ValueError"), _ASK),
            (
                "has the same hashes and addresses each time",
                _same,
                "let the kernel switch off address randomisation (personality)",
            ),
            *_LAST,
        ),
        "shell": (
            *_FIRST,
            ("writes nothing outside the workspace and /tmp", _WRITES_ROOT, _ASK),
            ("writes to a workspace only when it may", _attempts(write_workspace="EROFS"), _ASK),
            ("executes nothing that it wrote to /tmp", _attempts(execute="EACCES"), _ASK),
            ("makes no device", _attempts(device="ENOSYS"), _ASK),
            _BECOMES_ROOT,
            ("sees no process and no file of the machine", _seen(dev=_DEVICES, etc=_ACCOUNTS), _ASK),
            (_BOUNDED, _limits(raise_limit="ENOSYS"), _ASK),
            *_LAST,
        ),
    }
)
"""What programs need, and what commands and file tools need, which may start processes."""


class SelfTestResult(Frozen):
    """State for each property of a jail whether it was proven on this machine."""

    properties: tuple[Property, ...]
    nsjail: Nsjail
    image: str
    """The hash of the image the jails had."""
    answered_s: float
    """How long a jail took to start and answer."""

    def require_isolation(self) -> None:
        """Raise IsolationUnavailable with the first cause and fix, unless every required property is proven."""
        missing = [each for each in self.properties if each.required and not each.proven]
        if missing:
            raise IsolationUnavailable(
                f"a jail {missing[0].name}: not proven: {missing[0].cause}; {missing[0].fix}",
                cause=missing[0].cause,
                fix=missing[0].fix,
                missing=tuple(each.name for each in missing),
            )


async def run_self_test(
    nsjail: Nsjail, image: Image, folder: Path, *, limits: Limits | None = None, cgroups: Cgroups | None = None
) -> SelfTestResult:
    """Test every property of the jails that programs get; the configuration file is written to the folder.

    A property that is missing does not raise; the result says so.
    """
    profile = Profile(nsjail, image, limits=limits, cgroups=cgroups or Cgroups(), program=SELF_TEST)
    return await check_profile(profile, await asyncio.to_thread(profile.start, folder))


async def run_workspace_self_test(
    nsjail: Nsjail, image: Image, folder: Path, workspace: Path, *, limits: Limits, cgroups: Cgroups
) -> SelfTestResult:
    """Test every property of the jails that commands get, with a workspace that they may only read.

    A property that is missing does not raise; the result says so.
    """
    profile = Profile(nsjail, image, kind="shell", limits=limits, cgroups=cgroups, workspace=workspace)
    return await check_profile(profile, await asyncio.to_thread(profile.start, folder))


async def check_profile(profile: Profile, start: list[str]) -> SelfTestResult:
    """Test every property of the profile with the command line that starts it, whose program is the self-test."""
    image, arguments = profile.image, interpreter_arguments(SELF_TEST)
    evidence, found = await asyncio.gather(
        # The profile of commands does not name a program, so the self-test is passed as the command.
        gather_evidence(start, arguments, named=arguments if profile.kind == "shell" else ()),
        asyncio.to_thread(_hash_of, image),
    )
    if evidence.first.inside is None:
        cause, fix = likely_cause(evidence.first.log, image, profile.cgroups)
        names = [name for name, _, _ in RULES[profile.kind]]
        starts, *others = [Property(name=name, proven=False, cause=cause, fix=fix) for name in (_STARTS, *names)]
    else:
        starts, others = Property(name=_STARTS, proven=True), judge(evidence, profile)
    return SelfTestResult(
        properties=(starts, _unchanged(image, found), *others, *_caps(evidence, profile.cgroups)),
        nsjail=profile.nsjail,
        image=image.hash,
        answered_s=evidence.first.answered_s,
    )


def _hash_of(image: Image) -> str:
    try:
        return content_hash(image.path)
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _unchanged(image: Image, found: str) -> Property:
    if found == image.hash:
        return Property(name=_IMAGE, proven=True)
    return Property(
        name=_IMAGE,
        proven=False,
        cause=f"{image.path} has the content {found}, not {image.hash}",
        fix="remove that folder and run `backstay image build`",
    )


def _caps(evidence: Evidence, cgroups: Cgroups) -> list[Property]:
    """Return the caps on a whole jail; they matter most for commands, because a program is one process with limits."""
    caps: list[Property] = []
    for name in _CAPS:
        label = f"is bounded by a {name} cgroup"
        folder = getattr(cgroups, name)
        if folder is None:
            cause = next((reason for reason in cgroups.missing if reason.startswith(name)), "no cgroup was looked for")
            fix = "delegate cgroups to the worker: Delegate=yes in its unit, or a writable hierarchy in its container"
            caps.append(Property(name=label, proven=False, required=False, cause=cause, fix=fix))
        elif "/NSJAIL." in evidence.first.outside.cgroups or evidence.first.inside is None:
            caps.append(Property(name=label, proven=evidence.first.inside is not None))
        else:
            cause = f"the jail was not in a cgroup below {folder}"
            caps.append(Property(name=label, proven=False, cause=cause, fix="let the worker write there"))
    return caps
