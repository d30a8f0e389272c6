"""Become the first process of a container: put its root together, give up rights, load its filter, and run a program.

Started by `containers.py` in namespaces of its own, with a plan as JSON on standard input. It does what the engine of
containers does from the same words of docker-compose.yml; nothing of it is part of the product.
"""

import ctypes
import json
import os
import signal
import socket
import sys
from pathlib import Path

BIND, REMOUNT, READ_ONLY, NOSUID, NODEV, NOEXEC, RECURSIVE, PRIVATE = 4096, 32, 1, 2, 4, 8, 16384, 1 << 18
DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
NO_NEW_PRIVS, SECCOMP, DROP_BOUNDING, AMBIENT, CLEAR_AMBIENT, FILTER = 38, 22, 24, 47, 4, 2
# What Docker hides of /proc, which the kernel remembers when a jail asks for a new one.
MASKED = (
    "acpi",
    "asound",
    "interrupts",
    "kcore",
    "keys",
    "latency_stats",
    "timer_list",
    "timer_stats",
    "sched_debug",
    "scsi",
)
KEPT = ("bus", "fs", "irq", "sys", "sysrq-trigger")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}: {arguments}")


def mount(source, target, kind=None, flags=0, options=""):
    call("mount", str(source).encode(), str(target).encode(), kind and kind.encode(), flags, options.encode())


def bind(source, target, *, read_only=False):
    source, target = Path(source), Path(target)
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(source, target, flags=BIND | RECURSIVE)
    if read_only:
        mount("none", target, flags=BIND | REMOUNT | READ_ONLY | NOSUID | NODEV)


def overlay(layers, target):
    """Show layers as one folder; what is written goes to the upper one."""
    lower = ":".join(layers["lower"])
    mount("overlay", target, "overlay", 0, f"lowerdir={lower},upperdir={layers['upper']},workdir={layers['work']}")


def system_files(root):
    for folder in ("proc", "sys", "dev"):
        (root / folder).mkdir(exist_ok=True)
    mount("proc", root / "proc", "proc", NOSUID | NODEV | NOEXEC)
    for name in KEPT:
        if (root / "proc" / name).exists():
            bind(root / "proc" / name, root / "proc" / name, read_only=True)
    for name in MASKED:
        place = root / "proc" / name
        if place.is_dir():
            mount("tmpfs", place, "tmpfs", READ_ONLY)
        elif place.exists():
            mount("/dev/null", place, flags=BIND)
    mount("sysfs", root / "sys", "sysfs", READ_ONLY | NOSUID | NODEV | NOEXEC)
    mount("tmpfs", root / "dev", "tmpfs", NOSUID, "mode=755,size=65536k")
    for name in DEVICES:
        bind(f"/dev/{name}", root / "dev" / name)
    (root / "dev/shm").mkdir()
    mount("shm", root / "dev/shm", "tmpfs", NOSUID | NODEV | NOEXEC, "mode=1777,size=65536k")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (root / "dev" / name).symlink_to(f"/proc/self/fd/{number}")
    (root / "dev/fd").symlink_to("/proc/self/fd")


def enter(plan):
    """Make the root of the plan the root of this process."""
    root = Path(plan["root"])
    if plan["hostname"]:
        socket.sethostname(plan["hostname"])
    mount("none", "/", flags=PRIVATE | RECURSIVE)
    overlay(plan["layers"], root)
    for place in plan["opened"]:
        (root / place.lstrip("/")).chmod(0o755)
    for place in plan["tmpfs"]:
        mount("tmpfs", root / place.lstrip("/"), "tmpfs", NOSUID | NODEV | NOEXEC, "mode=1777")
    for number, layers in enumerate(plan["others"]):
        (root / f".other{number}").mkdir(exist_ok=True)
        overlay(layers, root / f".other{number}")
    for each in plan["mounts"]:
        bind(each["source"], root / each["target"].lstrip("/"), read_only=each["read_only"])
    system_files(root)
    if plan["read_only"]:
        mount("none", root, flags=BIND | REMOUNT | READ_ONLY)
    os.chdir(root)
    if libc.syscall(PIVOT_ROOT, b".", b".") != 0:
        raise OSError(ctypes.get_errno(), "pivot_root")
    call("umount2", b".", DETACH)
    os.chdir("/")


class Program(ctypes.Structure):
    """struct sock_fprog of the kernel."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def give_up(plan):
    """Take on the user of the plan, without any right of an administrator, and then its filter."""
    if plan["user"] is not None:
        if plan["cap_drop"] == ["ALL"]:
            for capability in range(64):
                if libc.prctl(DROP_BOUNDING, capability, 0, 0, 0) != 0:
                    break
        call("prctl", AMBIENT, CLEAR_AMBIENT, 0, 0, 0)
        uid, gid = plan["user"]
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    if plan["no_new_privs"]:
        call("prctl", NO_NEW_PRIVS, 1, 0, 0, 0)
    if plan["filter"]:
        code = bytes.fromhex(plan["filter"])
        call("prctl", SECCOMP, FILTER, ctypes.byref(Program(len(code) // 8, code)), 0, 0)


def main():
    """Run the program as a child, as the small init of an engine does, and end as it ends."""
    plan = json.loads(sys.stdin.read())
    os.umask(0o022)
    enter(plan)
    child = os.fork()
    if child == 0:
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        try:
            os.chdir(plan["cwd"])
            give_up(plan)
            os.execvpe(plan["command"][0], plan["command"], plan["environment"])
        except OSError as error:
            sys.stderr.write(f"{plan['command']}: {error}\n")
            os._exit(126)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: os.kill(child, received))
    while True:
        ended, status = os.wait()
        if ended == child:
            sys.exit(os.waitstatus_to_exitcode(status) % 256)


if __name__ == "__main__":
    main()
