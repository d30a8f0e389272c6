"""Turn a seccomp profile, as Docker reads it, into the filter that the kernel loads, with Docker's own library."""

import ctypes
import ctypes.util
import json
import os
import platform
import tempfile
from pathlib import Path

ACTIONS = {"SCMP_ACT_ALLOW": 0x7FFF0000, "SCMP_ACT_ERRNO": 0x00050000}
COMPARED = {"SCMP_CMP_EQ": 4, "SCMP_CMP_MASKED_EQ": 7}
MACHINES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}


class Argument(ctypes.Structure):
    """struct scmp_arg_cmp."""

    _fields_ = (("index", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def action(name, number):
    return ACTIONS[name] | (number if name == "SCMP_ACT_ERRNO" else 0)


def compiled(profile: Path) -> bytes:
    """Return the program of the kernel for this machine; calls that this libseccomp does not know are left out."""
    rules = json.loads(profile.read_text(encoding="utf-8"))
    assert MACHINES[platform.machine()] in [known["architecture"] for known in rules["archMap"]]
    library = ctypes.CDLL(ctypes.util.find_library("seccomp") or "libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_rule_add_array.argtypes = [
        *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
    ]
    library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.seccomp_release.argtypes = [ctypes.c_void_p]
    context = library.seccomp_init(action(rules["defaultAction"], rules["defaultErrnoRet"]))
    assert context
    try:
        for rule in rules["syscalls"]:
            assert not rule.keys() & {"includes", "excludes"}, "this program reads no conditions"
            wanted = action(rule["action"], rule.get("errnoRet", rules["defaultErrnoRet"]))
            given = [Argument(each["index"], COMPARED[each["op"]], each["value"], 0) for each in rule.get("args", ())]
            arguments = (Argument * len(given))(*given)
            for name in rule["names"]:
                number = library.seccomp_syscall_resolve_name(name.encode())
                if number >= 0:
                    done = library.seccomp_rule_add_array(context, wanted, number, len(given), arguments)
                    assert done == 0, f"{name}: {os.strerror(-done)}"
        with tempfile.TemporaryFile() as out:
            assert library.seccomp_export_bpf(context, out.fileno()) == 0
            out.seek(0)
            return out.read()
    finally:
        library.seccomp_release(context)
