"""System calls made by machine code from a file of its own, so that no library stands between a call and the filter.

Run as a program: for each call a tiny binary is written into an image that holds nothing else, started in a jail, and
asked how the call ended. Its exit code is 0 when the kernel did what was asked, the error number when it did not, and
159 when the call was deadly.
"""

import asyncio
import json
import struct
import sys
from pathlib import Path

from sandbox.images.image import Image
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import JailProfile, command

KILLED = 159
EPERM = 1
ENOSYS = 38
DATA = 0x600000
_CODE = 0x400000
_AT_ONCE = 4
_I386, _X32 = "i386", 0x40000000
_NEW_USER, _CHILD_SIGNAL = 0x10000000, 17

# Name: number, arguments. A pointer to DATA is a page of zeros.
CALLS: dict[str, tuple[int, ...]] = {
    "ptrace": (101, 0, 0, 0, 0),
    "process_vm_readv": (310, 1, DATA, 0, DATA, 0, 0),
    "process_vm_writev": (311, 1, DATA, 0, DATA, 0, 0),
    "kcmp": (312, 1, 1, 0, 0, 1),
    "bpf": (321, 0, DATA, 120),
    "perf_event_open": (298, DATA, 0, -1, -1, 0),
    "userfaultfd": (323, 1),
    "keyctl": (250, 0, -3, 1),
    "add_key": (248, DATA, DATA, DATA, 1, -3),
    "request_key": (249, DATA, DATA, 0, 0),
    "unshare_user": (272, _NEW_USER),
    "unshare_net": (272, 0x40000000),
    "setns": (308, 0, 0),
    "mount": (165, DATA, DATA, DATA, 0, 0),
    "umount2": (166, DATA, 0),
    "pivot_root": (155, DATA, DATA),
    "chroot": (161, DATA),
    "open_by_handle_at": (304, 0, DATA, 0),
    "open_tree": (428, -100, DATA, 0),
    "move_mount": (429, -1, DATA, -1, DATA, 0),
    "fsopen": (430, DATA, 0),
    "mount_setattr": (442, -100, DATA, 0, DATA, 32),
    "io_uring_setup": (425, 4, DATA),
    "io_uring_enter": (426, 0, 0, 0, 0, 0, 0),
    "io_uring_register": (427, 0, 0, 0, 0),
    "pidfd_open": (434, 1, 0),
    "pidfd_getfd": (438, 0, 0, 0),
    "init_module": (175, DATA, 0, DATA),
    "kexec_load": (246, 0, 0, 0, 0),
    "reboot": (169, 0, 0, 0, 0),
    "iopl": (172, 3),
    "modify_ldt": (154, 0, DATA, 16),
    "personality": (135, 0x0400000),
    "memfd_create": (319, DATA, 0),
    "memfd_secret": (447, 0),
    "landlock_create_ruleset": (444, 0, 0, 1),
    "mbind": (237, DATA, 4096, 0, 0, 0, 0),
    "inotify_init1": (294, 0),
    "shmget": (29, 0, 4096, 0o1600),
    "msgget": (68, 0, 0o1600),
    "semget": (64, 0, 1, 0o1600),
    "mseal": (462, DATA, 4096, 0),
    "clone_user": (56, _NEW_USER | _CHILD_SIGNAL, 0, 0, 0, 0),
    "clone": (56, _CHILD_SIGNAL, 0, 0, 0, 0),
    "clone_thread": (56, 0x00010F00, DATA + 2048, 0, 0, 0),
    "clone3": (435, DATA, 88),
    "fork": (57,),
    "vfork": (58,),
    "socket_unix": (41, 1, 1, 0),
    "socket_internet": (41, 2, 1, 0),
    "socket_internet_6": (41, 10, 1, 0),
    "socket_netlink": (41, 16, 3, 0),
    "socket_crypto": (41, 38, 5, 0),
    "socket_vsock": (41, 40, 1, 0),
    "socketpair": (53, 1, 1, 0, DATA),
    "seccomp": (317, 2, 0, DATA),
    "prctl": (157, 4, 1, 0, 0, 0),
    "setuid": (105, 0),
    "setgroups": (116, 0, DATA),
    "capset": (126, DATA, DATA),
    "sethostname": (170, DATA, 1),
    "kill": (62, 1, 0),
    "tgkill": (234, 1, 1, 0),
    "setrlimit": (160, 7, DATA),
    "prlimit64": (302, 0, 7, DATA, 0),
    "sched_setaffinity": (203, 0, 8, DATA),
    "mmap_writable_code": (9, 0, 4096, 7, 0x22, -1, 0),
    "mmap_anonymous_code": (9, 0, 4096, 5, 0x22, -1, 0),
    "mprotect_code": (10, DATA, 4096, 5),
    "pkey_mprotect_code": (329, DATA, 4096, 5, -1),
    "execveat": (322, -100, DATA, 0, 0, 0),
    "link": (86, DATA, DATA),
    "symlink": (88, DATA, DATA),
    "mknod": (133, DATA, 0o020666, 0x103),
    "splice": (275, 0, 0, 0, 0, 1, 0),
    "vmsplice": (278, 0, DATA, 0, 0),
    "timer_create": (222, 0, 0, DATA),
    "setitimer": (38, 0, DATA, 0),
    "steal_input": (16, 0, 0x5412, DATA),
    "own_signals": (72, 0, 8, 1),
    "resize_pipe": (72, 0, 1031, 4096),
    "getpid_x32": (_X32 | 39,),
    "execve_x32": (_X32 | 520, DATA, 0, 0),
    "socket_x32": (_X32 | 41, 2, 1, 0),
}
OLD_CALLS: dict[str, tuple[int, ...]] = {"getpid_i386": (20,), "fork_i386": (2,), "keyctl_i386": (288, 0, -3, 1)}


def binary(number: int, *arguments: int, old: bool = False) -> bytes:
    """An ELF file for x86-64 that makes one call and ends with 0 or the number of the error."""
    if old:
        registers = (b"\xbb", b"\xb9", b"\xba", b"\xbe", b"\xbf", b"\xbd")
        code = b"".join(
            register + struct.pack("<I", value & 0xFFFFFFFF)
            for register, value in zip(registers, arguments, strict=False)
        )
        code += b"\xb8" + struct.pack("<I", number) + b"\xcd\x80\x48\x98"
    else:
        registers = (b"\x48\xbf", b"\x48\xbe", b"\x48\xba", b"\x49\xba", b"\x49\xb8", b"\x49\xb9")
        code = b"".join(
            register + struct.pack("<Q", value & 0xFFFFFFFFFFFFFFFF)
            for register, value in zip(registers, arguments, strict=False)
        )
        code += b"\x48\xb8" + struct.pack("<Q", number) + b"\x0f\x05"
    # xor edi,edi; test rax,rax; jns +4; neg eax; mov edi,eax; mov eax,60; syscall
    code += b"\x31\xff\x48\x85\xc0\x79\x04\xf7\xd8\x89\xc7\xb8\x3c\x00\x00\x00\x0f\x05"
    start = 64 + 2 * 56
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, _CODE + start, 64, 0, 0, 64, 56, 2, 64, 0, 0
    )
    size = start + len(code)
    text = struct.pack("<IIQQQQQQ", 1, 5, 0, _CODE, _CODE, size, size, 4096)
    data = struct.pack("<IIQQQQQQ", 1, 6, 0, DATA, DATA, 0, 8192, 4096)
    return header + text + data + code


def write_image(folder: Path) -> Image:
    """An image of nothing but these binaries."""
    root = folder / "root"
    for name in ("call", "dev", "proc", "tmp", "workspace"):
        (root / name).mkdir(parents=True)
    for name, call in CALLS.items():
        (root / "call" / name).write_bytes(binary(*call))
    for name, call in OLD_CALLS.items():
        (root / "call" / name).write_bytes(binary(*call, old=True))
    for path in (root, *root.rglob("*")):
        path.chmod(0o755)
    return Image(kind="python", hash="0", path=root, python="0")


async def ends(line: list[str]) -> dict[str, int]:
    """Make every call in a jail of its own and return how each ended."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def end(name: str) -> int:
        async with gate, asyncio.timeout(150):
            nothing = asyncio.subprocess.DEVNULL
            file = f"/call/{name}"
            started = await asyncio.create_subprocess_exec(
                *line, "--exec_file", file, "--", file, stdin=nothing, stdout=nothing
            )
            return await started.wait()

    names = [*CALLS, *OLD_CALLS]
    return dict(zip(names, await asyncio.gather(*map(end, names)), strict=True))


def main(nsjail_path: str, kind: str, filtered: str) -> None:
    """Print how every call ended in jails of the kind, with the filter or with all but the filter."""
    folder = Path(f"calls-{kind}-{filtered}").resolve()
    folder.mkdir(mode=0o755)
    nsjail = Nsjail.find(nsjail_path)
    profile = JailProfile(nsjail, write_image(folder), kind=kind).write(folder)
    if filtered == "unfiltered":
        lines = profile.read_text(encoding="utf-8").splitlines(keepends=True)
        profile.write_text("".join(line for line in lines if not line.startswith("seccomp_string")), encoding="utf-8")
    print(json.dumps(asyncio.run(ends(command(nsjail, profile)))))  # noqa: T201 - it is a program


if __name__ == "__main__":
    main(*sys.argv[1:])
