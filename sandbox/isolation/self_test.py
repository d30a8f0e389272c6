"""Check that jails confine what runs in them: test every property in real jails before any program runs.

Here stand the properties too: how each is seen, and what to do without it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from backstay.data_files import data_beside
from backstay.errors import IsolationUnavailable
from backstay.frozen import Frozen
from sandbox.images.image import Image, content_hash
from sandbox.isolation.cause import likely_cause
from sandbox.isolation.cgroups import Cgroups
from sandbox.isolation.evidence import DEADLY, NAMESPACES, JailEvidence, gather_evidence
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import SELF_TEST, JailProfile, ProfileKind, interpreter_arguments
from sandbox.limits import Limits

_STARTS = "starts"
_IMAGE = "has the image it is named by"
_CAPS = ("memory", "pids", "cpu")
_KILLED = 128 + 31
_MB = 1 << 20


class Property(Frozen):
    """State whether a jail has one property; if not, why, and what an operator can do."""

    name: str
    proven: bool
    cause: str = ""
    fix: str = ""
    required: bool = True
    """Whether programs run without it."""


@dataclass(frozen=True)
class JailCase:
    """Hold what was seen of jails against the profile they had."""

    evidence: JailEvidence
    profile: JailProfile

    @property
    def inside(self) -> dict[str, Any]:
        """Return what the jail itself reported."""
        return self.evidence.first.inside or {}

    @property
    def status(self) -> dict[str, list[str]]:
        """Return what the kernel reports of the jailed process."""
        return self.evidence.first.outside.status


Check = Callable[[JailCase], list[str]]
"""Returns what speaks against a property."""
Rule = tuple[str, Check, str]
"""A name, its check, and the fix."""


def judge(evidence: JailEvidence, profile: JailProfile) -> list[Property]:
    """Return every property, proven or with the reason why not."""
    case = JailCase(evidence, profile)
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
    def check(case: JailCase) -> list[str]:
        ended = case.inside["attempts"]
        return [
            f"{name} ended with {ended.get(name)}, not {error}"
            for name, error in wanted.items()
            if ended.get(name) != error
        ]

    return check


def _status(**wanted: str) -> Check:
    return lambda case: _differences(case.status, {name: [value] for name, value in wanted.items()})


def _user(case: JailCase) -> list[str]:
    return [
        *_differences(case.inside, {"ids": [1000] * 4}),
        *_differences(case.status, {"Uid": [str(case.profile.outside_uid)] * 4}),
    ]


def _deadly(case: JailCase) -> list[str]:
    return _differences(case.evidence.deadly, dict.fromkeys(DEADLY, _KILLED))


def _namespaces(case: JailCase) -> list[str]:
    jailed, own = case.evidence.first.outside.namespaces, case.evidence.first.outside.own_namespaces
    return [
        f"the {name} namespace is {'that of the worker' if name in jailed else 'not to be seen'}"
        for name in NAMESPACES
        if name not in jailed or jailed[name] == own.get(name)
    ]


def _network(case: JailCase) -> list[str]:
    families = ["unix", "internet_6", "netlink", "vsock"]
    refusal, reach = ("EAFNOSUPPORT", "ENETUNREACH") if case.profile.kind == "network" else ("EPERM", "EPERM")
    families += [] if case.profile.kind == "network" else ["internet"]
    faults = _attempts(**{f"socket_{family}": refusal for family in families}, reach=reach)(case)
    interfaces = case.evidence.first.outside.interfaces
    return faults if set(interfaces) <= {"lo"} else [*faults, f"there are network interfaces: {', '.join(interfaces)}"]


def _seen(**allowed: Sequence[str]) -> Check:
    """Check that nothing but this is in the folders of the system, by the folder's name."""

    def check(case: JailCase) -> list[str]:
        seen = [
            f"{path} holds {', '.join(sorted(more)[:5])}"
            for path, names in case.inside["seen"].items()
            if (more := set(names).difference(allowed.get(path.strip("/"), ())))
        ]
        return [*seen, *_differences(case.inside, {"pid": 1, "host": "jail", "files": [0, 1, 2]})]

    return check


def _environment(case: JailCase) -> list[str]:
    arguments = list(interpreter_arguments(SELF_TEST))
    return _differences(case.inside, {"environment": dict(case.profile.environment), "arguments": arguments})


def _limits(case: JailCase) -> list[str]:
    limits = case.profile.bounds
    of_data = {} if limits.address_mb is None else {"DATA": limits.memory_mb * _MB}
    wanted = of_data | {
        "AS": (limits.address_mb or limits.memory_mb) * _MB,
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


def _space(case: JailCase) -> list[str]:
    limits, inside = case.profile.bounds, case.inside
    wanted = {"tmp_bytes": limits.tmp_mb * _MB, "tmp_inodes": limits.tmp_inodes}
    over = [] if inside["tmp_filled"] <= limits.tmp_mb else [f"{inside['tmp_filled']} MB could be written to /tmp"]
    return [*_differences(inside, wanted), *over]


def _same(case: JailCase) -> list[str]:
    first, second = case.inside, case.evidence.second.inside or {}
    return [f"{name} differs between two jails" for name in ("hash", "address") if first[name] != second.get(name)]


def _end(case: JailCase) -> list[str]:
    code, second = case.evidence.first.code, case.evidence.second
    faults = [] if code == 0 else [f"a jail whose input was closed ended with {code}"]
    if second.code is None or not second.gone:
        faults.append("a jail that was told to end did not, or left a process behind")
    return faults


_CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "user": _user,
        "namespaces": _namespaces,
        "network": _network,
        "deadly": _deadly,
        "limits": _limits,
        "same": _same,
        "space": _space,
        "end": _end,
        "environment": _environment,
    }
)
_LISTS = data_beside(__file__)
_KINDS: tuple[ProfileKind, ...] = ("code", "shell", "network")


def _rule(row: Mapping[str, Any]) -> Rule:
    """Return what a row of the file asks for; all of it must hold."""
    parts = [_CHECKS[row["check"]]] if "check" in row else []
    makers = {"attempts": _attempts, "status": _status, "seen": _seen}
    parts += [make(**row[name]) for name, make in makers.items() if name in row]
    fix = _LISTS["fixes"][row.get("fix", "report")]
    return row["name"], lambda case: [fault for part in parts for fault in part(case)], fix


def _is_for(kind: ProfileKind, row: Mapping[str, Any]) -> bool:
    """Return whether jails of this kind must have a property; those that reach hosts have all that shells have."""
    return row.get("only", kind) in (kind, "shell" if kind == "network" else kind)


RULES: Mapping[ProfileKind, tuple[Rule, ...]] = MappingProxyType(
    {kind: tuple(_rule(row) for row in _LISTS["properties"] if _is_for(kind, row)) for kind in _KINDS}
)
"""What programs need, what commands and file tools need, and what commands need that reach hosts."""


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
    profile = JailProfile(nsjail, image, limits=limits, cgroups=cgroups or Cgroups(), program=SELF_TEST)
    return await check_profile(profile, await asyncio.to_thread(profile.start, folder))


async def run_workspace_self_test(
    nsjail: Nsjail,
    image: Image,
    folder: Path,
    workspace: Path,
    *,
    limits: Limits,
    cgroups: Cgroups,
    kind: ProfileKind = "shell",
) -> SelfTestResult:
    """Test every property of the jails that commands get, with a workspace that they may only read.

    A property that is missing does not raise; the result says so.
    """
    profile = JailProfile(nsjail, image, kind=kind, limits=limits, cgroups=cgroups, workspace=workspace)
    return await check_profile(profile, await asyncio.to_thread(profile.start, folder))


async def check_profile(profile: JailProfile, start: list[str]) -> SelfTestResult:
    """Test every property of the profile with the command line that starts it, whose program is the self-test."""
    image, arguments = profile.image, interpreter_arguments(SELF_TEST)
    evidence, found = await asyncio.gather(
        # The profile of commands does not name a program, so the self-test is passed as the command.
        gather_evidence(start, arguments, named=() if profile.kind == "code" else arguments),
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


def _caps(evidence: JailEvidence, cgroups: Cgroups) -> list[Property]:
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
