"""The properties a jail must have before a program may run in it: how each is seen, and what to do without it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from backstay.frozen import Frozen
from sandbox.isolation.evidence import DEADLY, NAMESPACES, Evidence
from sandbox.limits import Limits

_KILLED = 128 + 31
_MB = 1 << 20
_DEVICES = frozenset({"null", "zero", "full", "random", "urandom"})
_ACCOUNTS = frozenset({"passwd", "group", "nsswitch.conf"})
_ASK = "report this with the output of `backstay doctor`; programs stay switched off until it holds"
_KERNEL = "use a kernel with seccomp filters and namespaces, and an nsjail of version 3.4 or newer"


class Property(Frozen):
    """Say whether a jail has one property; without it, why, and what an operator can do."""

    name: str
    proven: bool
    cause: str = ""
    fix: str = ""
    required: bool = True
    """Whether programs run without it."""


class Expected(Frozen):
    """Say what a jail must show."""

    limits: Limits
    environment: Mapping[str, str]
    arguments: tuple[str, ...]
    uid: int


@dataclass(frozen=True)
class Case:
    """Hold what was seen against what is expected."""

    evidence: Evidence
    expected: Expected

    @property
    def inside(self) -> dict[str, Any]:
        """What the jail itself told."""
        return self.evidence.first.inside or {}

    @property
    def status(self) -> dict[str, list[str]]:
        """What the kernel tells of the jailed process."""
        return self.evidence.first.outside.status


Rule = tuple[str, Callable[[Case], list[str]], str]
"""A name, what speaks against it, and the fix."""


def judge(evidence: Evidence, expected: Expected, rules: "tuple[Rule, ...] | None" = None) -> list[Property]:
    """Return every property, proven or with the reason why not; without rules, those of programs."""
    case = Case(evidence, expected)
    judged: list[Property] = []
    for name, against, fix in RULES if rules is None else rules:
        try:
            faults = against(case)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            faults = [f"the self-test told nothing usable about it ({type(error).__name__}: {error})"]
        judged.append(Property(name=name, proven=not faults, cause="; ".join(faults), fix=fix if faults else ""))
    return judged


def unproven(cause: str, fix: str, rules: "tuple[Rule, ...] | None" = None) -> list[Property]:
    """Return every property as not proven, because no jail started."""
    return [Property(name=name, proven=False, cause=cause, fix=fix) for name, _, _ in rules or RULES]


def _differences(seen: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    return [f"{name} is {seen.get(name)!r}, not {value!r}" for name, value in wanted.items() if seen.get(name) != value]


def _attempts(wanted: Mapping[str, str]) -> Callable[[Case], list[str]]:
    def against(case: Case) -> list[str]:
        told = case.inside["attempts"]
        return [
            f"{name} ended with {told.get(name)}, not {error}"
            for name, error in wanted.items()
            if told.get(name) != error
        ]

    return against


def _user(case: Case) -> list[str]:
    return [
        *_differences(case.inside, {"ids": [1000] * 4}),
        *_differences(case.status, {"Uid": [str(case.expected.uid)] * 4}),
    ]


def _capabilities(case: Case) -> list[str]:
    names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    return _differences(case.status, {name: ["0" * 16] for name in names})


def _privileges(case: Case) -> list[str]:
    return _differences(case.status, {"NoNewPrivs": ["1"]})


def _filter(case: Case) -> list[str]:
    return _differences(case.status, {"Seccomp": ["2"]})


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
    faults = _attempts({f"socket_{family}": "EPERM" for family in families})(case)
    interfaces = case.evidence.first.outside.interfaces
    return faults if set(interfaces) <= {"lo"} else [*faults, f"there are network interfaces: {', '.join(interfaces)}"]


def _seen(case: Case) -> list[str]:
    told = case.inside
    seen = [f"{path} holds {', '.join(names[:5])}" for path, names in told["seen"].items() if names]
    return [*seen, *_differences(told, {"pid": 1, "host": "jail", "files": [0, 1, 2]})]


def _seen_by_commands(case: Case) -> list[str]:
    told = case.inside
    allowed = {"/dev": _DEVICES, "/etc": _ACCOUNTS}
    seen = [
        f"{path} holds {', '.join(sorted(more)[:5])}"
        for path, names in told["seen"].items()
        if (more := set(names) - allowed.get(path, frozenset()))
    ]
    return [*seen, *_differences(told, {"pid": 1, "host": "jail", "files": [0, 1, 2]})]


def _environment(case: Case) -> list[str]:
    wanted = {"environment": dict(case.expected.environment), "arguments": list(case.expected.arguments)}
    return _differences(case.inside, wanted)


def _limits(case: Case) -> list[str]:
    return [*_numbers(case), *_attempts({"memory": "MemoryError", "raise_limit": "ValueError"})(case)]


def _limits_of_commands(case: Case) -> list[str]:
    return [*_numbers(case), *_attempts({"memory": "MemoryError", "raise_limit": "ENOSYS"})(case)]


def _numbers(case: Case) -> list[str]:
    limits = case.expected.limits
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
    limits = case.expected.limits
    wanted = {"tmp_bytes": limits.tmp_mb * _MB, "tmp_inodes": limits.tmp_inodes}
    told = case.inside
    over = [] if told["tmp_filled"] <= limits.tmp_mb else [f"{told['tmp_filled']} MB could be written to /tmp"]
    return [*_differences(told, wanted), *over]


def _same(case: Case) -> list[str]:
    one, other = case.inside, case.evidence.second.inside or {}
    return [f"{name} differs between two jails" for name in ("hash", "address") if one[name] != other.get(name)]


def _end(case: Case) -> list[str]:
    faults = (
        []
        if case.evidence.first.code == 0
        else [f"a jail whose input was closed ended with {case.evidence.first.code}"]
    )
    if case.evidence.second.code is None or not case.evidence.second.gone:
        faults.append("a jail that was told to end did not, or left a process behind")
    return faults


_ALWAYS: tuple[Rule, ...] = (
    ("runs as a user without rights", _user, _KERNEL),
    ("holds no capability", _capabilities, _KERNEL),
    ("gains no privilege by executing a file", _privileges, _KERNEL),
    ("has namespaces of its own", _namespaces, _KERNEL),
    ("has no network", _network, _ASK),
    ("passes every system call through a filter", _filter, "use a kernel with CONFIG_SECCOMP_FILTER"),
    ("dies of an attack on the kernel", _deadly, _ASK),
)
RULES: tuple[Rule, ...] = (
    *_ALWAYS,
    ("starts no process and no thread", _attempts({"fork": "EPERM", "spawn": "EPERM", "thread": "RuntimeError"}), _ASK),
    ("writes nothing outside /tmp", _attempts({"write_root": "EROFS", "write_library": "EROFS"}), _ASK),
    ("executes nothing that it wrote", _attempts({"execute": "EACCES", "memory_file": "EPERM"}), _ASK),
    ("makes no memory executable", _attempts({"machine_code": "EPERM"}), _ASK),
    ("makes no link, no device, no signal", _attempts({"link": "EPERM", "device": "EPERM", "kill": "EPERM"}), _ASK),
    ("becomes no other user", _attempts({"become_root": "EPERM"}), _ASK),
    ("sees no process, no device and no file of the machine", _seen, _ASK),
    ("finds nothing of the worker's environment", _environment, _ASK),
    ("is bounded in memory, processor time, files and processes", _limits, _ASK),
    ("is bounded in what it writes to /tmp", _space, _ASK),
    (
        "has the same hashes and addresses each time",
        _same,
        "let the kernel switch off address randomisation (personality)",
    ),
    ("ends when it is told to", _end, _ASK),
)

WORKSPACE_RULES: tuple[Rule, ...] = (
    *_ALWAYS,
    (
        "writes nothing outside the workspace and /tmp",
        _attempts({"write_root": "EROFS", "write_library": "EROFS"}),
        _ASK,
    ),
    ("writes to a workspace only when it may", _attempts({"write_workspace": "EROFS"}), _ASK),
    ("executes nothing that it wrote to /tmp", _attempts({"execute": "EACCES"}), _ASK),
    ("makes no device", _attempts({"device": "ENOSYS"}), _ASK),
    ("becomes no other user", _attempts({"become_root": "EPERM"}), _ASK),
    ("sees no process and no file of the machine", _seen_by_commands, _ASK),
    ("finds nothing of the worker's environment", _environment, _ASK),
    ("is bounded in memory, processor time, files and processes", _limits_of_commands, _ASK),
    ("is bounded in what it writes to /tmp", _space, _ASK),
    ("ends when it is told to", _end, _ASK),
)
"""What commands and file tools need; they may start processes, where programs may not."""
