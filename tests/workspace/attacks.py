"""Commands that try to get out of a workspace, or to take more than is theirs, and what must be true afterwards."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sandbox.machine_code import CALLS, ENOSYS, EPERM, KILLED

Told = dict[str, Any]
NO_CALL = os.strerror(errno.ENOSYS)


@dataclass(frozen=True)
class Attack:
    """Hold one command; `holds` is given the answer and the folder of the workspace."""

    name: str
    command: str
    holds: Callable[[Told, Path], bool]
    writable: bool = True
    seconds: float = 150.0
    call: str = ""
    """A binary that makes this one system call, written to `call` before."""
    network: tuple[str, ...] = ()
    """The hosts that the call names."""


def _out(told: Told) -> str:
    return told["ok"]["stdout"]


def _says(*texts: str) -> Callable[[Told, Path], bool]:
    return lambda told, _: all(text in _out(told) + told["ok"]["stderr"] for text in texts)


def _prints(text: str) -> Callable[[Told, Path], bool]:
    return lambda told, _: _out(told).strip() == text


def _ended(reason: str, code: int) -> Callable[[Told, Path], bool]:
    return lambda told, _: told["ok"]["exit_code"] == code and reason in told["ok"]["stderr"]


def _undone(*reasons: str) -> Callable[[Told, Path], bool]:
    def holds(told: Told, root: Path) -> bool:
        said = told["error"]
        return any(reason in said for reason in reasons) and "nothing of it was kept" in said and not held(root)

    return holds


def _changed_or_undone(number: int) -> Callable[[Told, Path], bool]:
    return lambda told, root: told["ok"]["changed"] == number if "ok" in told else not held(root)


def held(root: Path) -> list[str]:
    """What is in a workspace beside what the driver put there."""
    return sorted(path.name for path in root.iterdir() if path.name not in {"call", "sock"})


def _python(source: str) -> str:
    return f"python3 - <<'END'\n{source}\nEND\n"


_TRIED = """
import os, socket, stat, sys
def tried(action):
    try:
        action()
    except OSError as error:
        return os.strerror(error.errno)
    return "done"
"""

FILES = (
    Attack("absolute link", "ln -s /etc/shadow x; cat x; cat /etc/passwd", _says("No such file", "jail:x:1000")),
    Attack("relative link", "ln -s ../../../../../../etc/hostname x; cat x", _says("No such file")),
    Attack("chain of links", "ln -s b a; ln -s c b; ln -s ../outside/secret.txt c; cat a", _says("No such file")),
    Attack("loop of links", "ln -s b a; ln -s a b; cat a", _says("Too many levels of symbolic links")),
    Attack("link to a folder", "ln -s / root; ls root/home root/root root/workspace/..", _says("No such file")),
    Attack("processes", "ls /proc | wc -l; cat /proc/1/environ", lambda told, _: _out(told) == "0\n"),
    Attack("environment", "env | grep -i token; echo ${WORKER_TOKEN-none}", _prints("none")),
    Attack("hard link across", "ln /usr/bin/env x || ln /etc/passwd x", _says("ross-device link")),
    Attack(
        "write the system", "echo x > /usr/bin/x; echo x > /etc/passwd; echo x > /x", _says("Read-only file system")
    ),
    Attack("up and out", "echo x > /workspace/../outside; echo x > ../home", _says("Read-only file system")),
    Attack("change of root", "cd ..; ls -d outside home workspaces 2>&1", _says("outside", "No such file")),
    Attack(
        "devices",
        _python(
            _TRIED + "print(tried(lambda: os.mknod('d', stat.S_IFCHR | 0o666, os.makedev(1, 1))),"
            " tried(lambda: os.mknod('b', stat.S_IFBLK | 0o666, os.makedev(8, 0))))"
        ),
        _prints(f"{NO_CALL} {NO_CALL}"),
    ),
    Attack(
        "disks", "ls /dev; cat /dev/mem /dev/sda", lambda told, _: "mem" not in _out(told) and "sda" not in _out(told)
    ),
    Attack(
        "set-uid",
        "cp /usr/bin/env x; chmod 4755 x; chmod u+s x; stat -c %a x",
        _says(NO_CALL, "755"),
    ),
    Attack("set-gid folder", "mkdir d; chmod 2777 d; stat -c %a d", _says(NO_CALL)),
    Attack("another owner", "echo x > x; python3 -c 'import os; os.chown(\"x\", 0, 0)'", _says("PermissionError")),
    Attack(
        "odd names",
        "touch -- $'a\\nb' $'\\e[31mred' '-rf' ' ' $'\\xff\\xfe' '..a'; ls | wc -l",
        lambda told, _: told["ok"]["exit_code"] == 0 and told["ok"]["changed"] == 6,
    ),
    Attack(
        "ten thousand files",
        "for i in $(seq 100); do mkdir d$i; touch d$i/{1..99}; done",
        lambda told, _: told["ok"]["changed"] == 10_000 and len(told["ok"]["changes"]) == 200,
        seconds=60.0,
    ),
    Attack("deep folders", "for i in $(seq 400); do mkdir d && cd d || break; done", _undone("")),
    Attack(
        "archive with ways out",
        _python(
            "import io, tarfile, zipfile\n"
            "with tarfile.open('a.tar', 'w') as t:\n"
            "    for n in ('../../tmp/pwned', '/usr/pwned', '../outside/pwned'):\n"
            "        i = tarfile.TarInfo(n); i.size = 1; t.addfile(i, io.BytesIO(b'x'))\n"
            "with zipfile.ZipFile('a.zip', 'w') as z:\n"
            "    z.writestr('../../outside/pwned', 'x')\n"
        )
        + "tar -xPf a.tar; unzip -: a.zip; ls ..",
        lambda told, root: not (root.parent.parent / "outside/pwned").exists() and held(root) == ["a.tar", "a.zip"],
    ),
    Attack(
        "hooks of git",
        "git init -q . && mkdir -p .git/hooks && for h in post-checkout pre-commit post-index-change fsmonitor; do"
        " printf '#!/bin/sh\\ntouch ../outside/pwned /tmp/pwned\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done;"
        " git config core.fsmonitor .git/hooks/fsmonitor; echo x > x; echo done",
        lambda told, root: "done" in _out(told) and not (root.parent.parent / "outside/pwned").exists(),
    ),
    Attack(
        "time turned back",
        "echo b > x; touch -d 1970-01-02 x; stat -c %Y x",
        lambda told, _: told["ok"]["changed"] == 1,
    ),
    Attack("core dump", "ulimit -c unlimited; bash -c 'kill -SEGV $$'; ls", lambda told, root: not held(root)),
    Attack("unreadable", "mkdir d; echo x > d/x; chmod 000 d/x d", _changed_or_undone(2)),
    Attack("pipe with a name", "mkfifo p; ls -l p", _says("prw")),
)
READ_ONLY = (
    Attack("write", "echo x > x; touch y; mkdir z; ln -s a b", _says("Read-only file system"), writable=False),
    Attack("rename", "mv sock x; rm -f sock", _says("Read-only file system"), writable=False),
    Attack(
        "remount",
        _python(_TRIED + "print(tried(lambda: os.open('/workspace', os.O_WRONLY | os.O_TMPFILE)))"),
        _prints("Read-only file system"),
        writable=False,
    ),
)
RESOURCES = (
    Attack("fork bomb", ":(){ :|:& };: ; sleep 1; echo over", lambda told, _: "ok" in told, seconds=4.0),
    Attack(
        "memory of many",
        "for i in 1 2 3 4 5 6; do python3 -c 'a = b\"x\" * (300 << 20); import time; time.sleep(9)' & done; wait",
        lambda told, _: any(sign in told["ok"]["stderr"] for sign in ("Killed", "MB of memory")),
        seconds=40.0,
    ),
    Attack("memory of one", "python3 -c 'bytearray(4 << 30)'", _says("MemoryError")),
    # A busy machine may look only when all is written, which no snapshot holds either.
    Attack(
        "disk",
        "dd if=/dev/zero of=big bs=1M count=900; sleep 30",
        _undone("it wrote", "are over the limit of"),
        seconds=60.0,
    ),
    Attack("disk of many", "for i in 1 2 3; do head -c 20000000 /dev/zero > $i; done", _undone("it wrote")),
    Attack(
        "open without a name",
        _python(
            "import os, time\nf = open('x', 'wb')\nos.unlink('x')\n"
            "for _ in range(90): f.write(bytes(1 << 20))\nf.flush(); time.sleep(30)"
        ),
        _undone("it wrote"),
        seconds=60.0,
    ),
    Attack(
        "mapped without a name",
        _python(
            "import mmap, os, time\nf = open('x', 'w+b')\nf.truncate(90 << 20)\nm = mmap.mmap(f.fileno(), 0)\n"
            "f.close(); os.unlink('x')\nfor n in range(90): m[n << 20:(n << 20) + (1 << 20)] = b'x' * (1 << 20)\n"
            "m.flush(); time.sleep(30)"
        ),
        _undone("it wrote"),
        seconds=60.0,
    ),
    Attack(
        "in a closed folder",
        "mkdir d; chmod 300 d; head -c 90M /dev/urandom > d/x; sync; sleep 30",
        _undone("it wrote"),
        seconds=60.0,
    ),
    Attack(
        "shared memory",
        _python(
            _TRIED + "import mmap\nprint(tried(lambda: mmap.mmap(-1, 1 << 26)),"
            " tried(lambda: mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 26)))"
        ),
        _prints(f"{NO_CALL} {os.strerror(errno.ENODEV)}"),
    ),
    Attack(
        "buffers of sockets",
        _python(
            "import os, socket, time\nheld = []\n"
            "for _ in range(8):\n    if os.fork() == 0: break\n"
            "for _ in range(500):\n    for end in socket.socketpair():\n"
            "        held.append(end); end.setblocking(False)\n"
            "        try:\n            while end.send(bytes(65536)): pass\n        except OSError: pass\n"
            "time.sleep(30)"
        ),
        _ended("MB of memory", 137),
        seconds=60.0,
    ),
    Attack(
        "larger buffers",
        _python(
            _TRIED + "a, b = socket.socketpair()\n"
            "print({tried(lambda o=o: a.setsockopt(socket.SOL_SOCKET, o, 1 << 24)) for o in (7, 8)})"
        ),
        _prints(f"{{'{NO_CALL}'}}"),
    ),
    Attack(
        "files in buffers",
        _python(_TRIED + "a, b = socket.socketpair()\nprint(tried(lambda: socket.send_fds(a, [b'x'], [b.fileno()])))"),
        _prints(NO_CALL),
    ),
    Attack(
        "sockets still serve",
        _python(
            "import asyncio\nasync def main():\n    p = await asyncio.create_subprocess_exec('echo', 'served')\n"
            "    await p.wait()\nasyncio.run(main())"
        ),
        _prints("served"),
    ),
    Attack("one large file", "head -c 3G /dev/zero > /tmp/x; stat -c %s /tmp/x", _says("No space left")),
    Attack("flood of output", "yes", _ended("it said more than", 137)),
    Attack("flood of errors", "yes >&2", _ended("it said more than", 137)),
    Attack("never ends", "while :; do :; done", _ended("it took longer than 2 s", 124), seconds=2.0),
    Attack(
        "deaf to signals",
        "trap '' TERM INT HUP; sleep 300 & sleep 300",
        _ended("it took longer than 2 s", 124),
        seconds=2.0,
    ),
)
PROCESSES = (
    Attack("daemon", "(sleep 300 &) ; echo done", _prints("done")),
    Attack(
        "session of its own",
        "setsid() { python3 -c 'import os,time; os.setsid(); os.fork() or time.sleep(300)' & }; setsid; echo done",
        _prints("done"),
    ),
    Attack("holds the output", "sleep 300 & disown; echo done", _prints("done")),
    Attack("kill all", "kill -9 -1; kill -9 {victim}; echo $?", lambda told, _: True),
    Attack("kill the parent", "kill -9 $PPID; kill -STOP $PPID; echo $PPID", _says("0")),
    Attack(
        "terminal",
        _python(_TRIED + "import fcntl\nprint(tried(lambda: fcntl.ioctl(0, 0x5412, b'x')))"),
        lambda told, _: "done" not in _out(told),
    ),
)
NETWORK = (
    Attack("tcp", "exec 3<>/dev/tcp/127.0.0.1/{port}", _says("Operation not permitted")),
    Attack(
        "all families",
        _python(
            _TRIED
            + "print({tried(lambda f=f, k=k: socket.socket(f, k)) for f in (1, 2, 10, 16, 17, 40) for k in (1, 2, 3)})"
        ),
        _prints("{'Operation not permitted'}"),
    ),
    Attack(
        "socket in the workspace",
        _python(_TRIED + "import _socket\nprint(tried(lambda: _socket.socket(1, 1).connect('sock')))"),
        _prints("Operation not permitted"),
    ),
)
_DEADLY = (
    "ptrace",
    "process_vm_readv",
    "keyctl",
    "bpf",
    "unshare_user",
    "mount",
    "pivot_root",
    "setns",
    "io_uring_setup",
)
_REFUSED = ("clone_user", "clone3", "memfd_create", "prctl", "personality", "setuid", "seccomp", "sethostname")
KERNEL = tuple(Attack(f"call {name}", "./call; echo $?", _prints(str(KILLED)), call=name) for name in _DEADLY) + tuple(
    Attack(f"call {name}", "./call; echo $?", lambda told, _: int(_out(told)) in (EPERM, ENOSYS), call=name)
    for name in _REFUSED
)
_ASKS = (
    _TRIED
    + """
def ask(head, port=3128):
    with socket.socket() as made:
        made.settimeout(20)
        made.connect(("127.0.0.1", port))
        made.sendall(head.encode())
        made.shutdown(socket.SHUT_WR)
        said = b""
        while more := made.recv(4096):
            said += more
    return said.decode(errors="replace")
def tunnel(to):
    return ask(f"CONNECT {to} HTTP/1.1\\r\\n\\r\\n").partition("\\r\\n")[0]
"""
)
FAR = ("far.example",)


def _reached(told: Told) -> list[tuple[str, int]]:
    return [(each["host"], each["port"]) for each in told["used"].get("reached", [])]


HOSTS = (
    Attack(
        "curl",
        "curl -s http://far.example/a; curl -s -p http://far.example:443/b; curl -sS http://other.example/; echo $?",
        lambda told, _: (
            "asked: GET /a HTTP/1.1" in _out(told)
            and "asked: GET /b HTTP/1.1" in _out(told)
            and "backstay: other.example:80 is not in" in _out(told)
            and _reached(told) == [(*FAR, 80), (*FAR, 443)]
        ),
        network=FAR,
    ),
    Attack(
        "named host",
        _python(_ASKS + "print(ask('GET http://far.example/a HTTP/1.1\\r\\nHost: far.example\\r\\n\\r\\n'))"),
        lambda told, _: "asked: GET /a HTTP/1.1|Host: far.example|" in _out(told) and _reached(told) == [(*FAR, 80)],
        network=FAR,
    ),
    Attack(
        "hosts that were not named",
        _python(
            _ASKS
            + "for to in ('other.example:443', 'far.example:22', 'far.example.evil.test:443', '127.0.0.1:{port}',\n"
            "        '169.254.169.254:80', '[::ffff:10.0.0.1]:443', '2130706433:443', '0x7f.1:443',\n"
            "        'localhost:{port}', 'a:b@far.example:443', 'f\u0430r.example:443', 'far.example',\n"
            "        'far.example:443:443', 'far_example:443'):\n"
            "    print(tunnel(to))\n"
        ),
        lambda told, _: (
            {line.split()[1] for line in _out(told).splitlines()} == {"400", "403"}
            and len(_out(told).splitlines()) == 14
            and not _reached(told)
            and told["used"]["refused"] == 14
            and "not reached: other.example:443 is not in `network` of this call" in told["ok"]["stderr"]
        ),
        network=FAR,
    ),
    Attack(
        "names of private addresses",
        _python(
            _ASKS + "for name in ('near', 'both', 'mapped', 'metadata'):\n"
            "    print(tunnel(f'{name}.example:443').split()[1])\n"
        ),
        lambda told, _: _out(told).split() == ["403"] * 4 and not _reached(told) and "10.0.0.1" in told["ok"]["stderr"],
        network=("near.example", "both.example", "mapped.example", "metadata.example"),
    ),
    Attack(
        "other ways out of a network of its own",
        _python(
            _TRIED + "kinds = [(2, 2, 0), (2, 3, 1), (2, 1, 262), (2, 1, 132), (10, 1, 0), (1, 1, 0), (1, 2, 0)]\n"
            "kinds += [(16, 3, 0), (17, 3, 0)]\n"
            "print({tried(lambda k=k: socket.socket(*k)) for k in kinds})\n"
            "for to in (('10.0.0.1', 80), ('192.0.2.1', 443), ('127.0.0.1', {port}), ('127.0.0.2', {port})):\n"
            "    print(tried(lambda: socket.create_connection(to, 5)))\n"
            "made = socket.socket()\n"
            "print({tried(lambda: made.bind(('127.0.0.1', 4000))), tried(made.listen)})\n"
            "print(tried(lambda: socket.socketpair(1, 2)), tried(lambda: socket.send_fds(made, [b'x'], [0])))\n"
            "pair = socket.socketpair()[0]\n"
            "print(tried(lambda: pair.connect('sock')), tried(lambda: pair.sendto(b'x', '/workspace/sock')))\n"
            "print(tried(lambda: made.setsockopt(6, 31, b'tls')), tried(lambda: made.setsockopt(0, 4, b'x')))\n"
        ),
        lambda told, _: (
            _out(told).splitlines()
            == [
                "{'Address family not supported by protocol'}",
                "Network is unreachable",
                "Network is unreachable",
                "Connection refused",
                "Connection refused",
                "{'Operation not permitted'}",
                f"Address family not supported by protocol {NO_CALL}",
                f"Transport endpoint is already connected {NO_CALL}",
                "Protocol not available Protocol not available",
            ]
            and not _reached(told)
        ),
        network=FAR,
    ),
    Attack(
        "10,000 connections",
        _python(
            _TRIED + "import collections\nseen = collections.Counter()\nheld = []\n"
            "for number in range(10_000):\n"
            "    made = socket.socket()\n"
            "    made.settimeout(20)\n"
            "    seen[tried(lambda: made.connect(('127.0.0.1', 3128)))] += 1\n"
            "    made.close()\n"
            "print(seen['done'] <= 1200, seen['Connection refused'] >= 8800, sum(seen.values()))\n"
        ),
        # What waits to be accepted may hold more than is allowed, and then it is ended before.
        lambda told, _: (
            (_out(told) == "True True 10000\n" and "1000 connections" in told["ok"]["stderr"])
            or "MB of memory" in told["ok"]["stderr"]
        ),
        network=FAR,
    ),
    Attack(
        "buffers of connections",
        _python(
            "import socket, time\nheld = []\n"
            "for _ in range(200):\n"
            "    made = socket.socket()\n    made.setblocking(False)\n    held.append(made)\n"
            "    made.connect_ex(('127.0.0.1', 3128))\n"
            "for _ in range(50):\n"
            "    time.sleep(0.1)\n"
            "    for each in held:\n"
            "        try:\n            each.send(bytes(1 << 20))\n"
            "        except OSError:\n            pass\n"
            "print('kept')\n"
        ),
        _ended("MB of memory", 137),
        network=FAR,
    ),
)
ATTACKS = (*FILES, *READ_ONLY, *RESOURCES, *PROCESSES, *NETWORK, *HOSTS, *KERNEL)

assert {attack.call for attack in ATTACKS if attack.call} <= CALLS.keys()
