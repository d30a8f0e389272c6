"""Why no jail starts here: the likely cause, read from what nsjail said and from what the kernel allows."""

import os
import re
from pathlib import Path

from sandbox.images.image import Image
from sandbox.isolation.cgroups import Cgroups

_SYSCTL = Path("/proc/sys")
_PLAIN = (
    (
        r"nsjail did not start|error while loading shared libraries|GLIBC",
        "the nsjail binary does not run on this machine",
        "install backstay[sandbox] for this platform, or name another in BACKSTAY_NSJAIL",
    ),
    (r"Could(n't| not) parse", "this nsjail does not understand the configuration", "use nsjail 3.4 or newer"),
    (r"compile policy", "this nsjail does not understand the system call policy", "use nsjail 3.4 or newer"),
    (r"PR_SET_SECCOMP", "the kernel refuses system call filters", "use a kernel with CONFIG_SECCOMP_FILTER"),
)
_USER_MAP = (
    r"id_map|setgroups|setresuid|setresgid",
    "the worker may not give the jail a user of its own",
    "run the worker as an ordinary user, or as root with CAP_SETUID and CAP_SETGID",
)


def likely_cause(
    log: str, image: Image, cgroups: Cgroups, *, sysctl: Path = _SYSCTL, root: bool | None = None
) -> tuple[str, str]:
    """Return the cause in one line, and what an operator can do about it; root says whether the worker is root."""
    message = _first_fault(log)
    root = os.geteuid() == 0 if root is None else root
    for found in (
        *(_plain(log, *known) for known in _PLAIN),
        _cgroup(log, cgroups),
        _namespaces(log, sysctl, root=root),
        _plain(log, *_USER_MAP),
        _mount(log, image),
    ):
        if found:
            cause, fix = found
            return f"{cause} (nsjail: {message})", fix
    return f"nsjail ended before the jail answered: {message}", "run `backstay doctor` and read what nsjail says"


def _plain(log: str, pattern: str, cause: str, fix: str) -> tuple[str, str] | None:
    return (cause, fix) if re.search(pattern, log) else None


def _first_fault(log: str) -> str:
    """Return the first fault that nsjail reported, without the date and the place in its source."""
    lines = [re.sub(r"^\[[A-Z]\]\[[^]]*\](\[\d+\])? *(\w+\(\):\d+ *)?", "", line) for line in log.splitlines()]
    faults = [line for line in lines if re.search(r"fail|denied|not permitted|error|Could", line, re.IGNORECASE)]
    return (faults or lines or ["nothing"])[0][:300]


def _cgroup(log: str, cgroups: Cgroups) -> tuple[str, str] | None:
    if not re.search(r"createCgroup|writeToCgroup|addPidTo|initialize cgroup|parent cgroup", log):
        return None
    folders = sorted(map(str, cgroups.folders))
    gone = [folder for folder in folders if not Path(folder).is_dir()]
    which = f"{', '.join(gone)} is missing" if gone else f"{', '.join(folders)} cannot be written"
    return (
        f"a cgroup for the jail cannot be made: {which}",
        "restart the worker, which makes these folders, and let it write there",
    )


def _namespaces(log: str, sysctl: Path, *, root: bool) -> tuple[str, str] | None:
    if "clone" not in log and "NEWUSER" not in log and "unshare" not in log:
        return _apparmor(log, sysctl, root=root)
    if _number(sysctl / "user/max_user_namespaces") == 0:
        return (
            "user namespaces are switched off (user.max_user_namespaces is 0)",
            "sysctl -w user.max_user_namespaces=10000",
        )
    if not root and _number(sysctl / "kernel/unprivileged_userns_clone") == 0:
        return (
            "only root may make user namespaces (kernel.unprivileged_userns_clone is 0)",
            "sysctl -w kernel.unprivileged_userns_clone=1",
        )
    if "No space left" in log or "ENOSPC" in log:
        return "the limit of namespaces is reached", "raise the limits in /proc/sys/user/max_*_namespaces"
    restricted = _apparmor(log, sysctl, root=root)
    if restricted:
        return restricted
    if _filtered():
        return (
            "the container's own system call filter forbids namespaces",
            "start the container with a seccomp profile that allows them, such as deploy/seccomp.json",
        )
    return (
        "the kernel refuses namespaces to this worker",
        "let the worker make user namespaces, or run it on another machine",
    )


def _apparmor(log: str, sysctl: Path, *, root: bool) -> tuple[str, str] | None:
    refused = "Permission denied" in log or "not permitted" in log
    if refused and not root and _number(sysctl / "kernel/apparmor_restrict_unprivileged_userns") == 1:
        return (
            "AppArmor takes the rights from user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
            "give nsjail an AppArmor profile that says `userns,`, or set that switch to 0 with sysctl",
        )
    return None


def _mount(log: str, image: Image) -> tuple[str, str] | None:
    if "mount" not in log and "pivot_root" not in log:
        return None
    closed = _closed_folder(image.path)
    if "Permission denied" in log and closed:
        return (
            f"the jail's user cannot reach the image: {closed} is closed to others",
            f"chmod o+x {closed}, or keep the images elsewhere",
        )
    if not image.path.is_dir():
        return f"the image at {image.path} is gone", "run `backstay image build`"
    return (
        "mounting is refused inside a user namespace, as a container's seccomp, AppArmor or SELinux profile does",
        "start the container with deploy/seccomp.json, and apparmor=unconfined, as docker-compose.yml does",
    )


def _closed_folder(path: Path) -> Path | None:
    """Return the first folder on the way that others than its owner cannot enter."""
    for folder in (*reversed(path.parents), path):
        try:
            if not folder.stat().st_mode & 0o001:
                return folder
        except OSError:
            return folder
    return None


def _number(place: Path) -> int | None:
    try:
        return int(place.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _filtered() -> bool:
    """Return whether this worker itself runs under a system call filter."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return bool(re.search(r"^Seccomp:\s*2$", status, re.MULTILINE))
