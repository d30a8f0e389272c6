# Raw system calls without ctypes: an interpreter that trusts its bytecode can be made to read and write any address.
import mmap
import struct
import types
from opcode import opmap


def _object_at(address):
    """Load what lies at an address as an object, through a constant beyond the end of its tuple."""
    holders = [struct.pack("<Q", address) + bytes(8 * n) for n in range(1, 60)]
    for _ in range(10000):
        constants = tuple([None, 1.5])
        for holder in holders:
            distance = id(holder) + 32 - (id(constants) + 24)
            if distance > 0 and distance % 8 == 0 and distance // 8 < 1 << 31:
                index = distance // 8
                parts = [(index >> shift) & 255 for shift in (24, 16, 8, 0)]
                more = opmap["EXTENDED_ARG"]
                code = bytes([opmap["RESUME"], 0, more, parts[0], more, parts[1], more, parts[2]])
                code += bytes([opmap["LOAD_CONST"], parts[3], opmap["RETURN_VALUE"], 0])
                made = (lambda: None).__code__.replace(co_code=code, co_consts=constants, co_stacksize=4)
                return types.FunctionType(made, {})(), holder, constants
        holders.append(struct.pack("<Q", address) + bytes(8 * len(holders)))
    raise RuntimeError("no place found")


_fake = struct.pack("<QQQQQQQ", 1 << 40, id(bytearray), (1 << 63) - 1, (1 << 63) - 1, 0, 0, 0) + bytes(64)
memory, _kept1, _kept2 = _object_at(id(_fake) + 32)


def word(address):
    return struct.unpack_from("<Q", memory, address)[0]


_page = mmap.mmap(-1, 8192, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
_start = word(id(_page) + 16)
_none = id(None)


def _machine(enter):
    """Load six registers and the number from the second page, enter the kernel, store the answer, return None."""
    table = _start + 4096
    return (
        b"\x53\x55\x41\x54"  # push rbx, rbp, r12
        + b"\x49\xbc" + struct.pack("<Q", table)  # mov r12, table
        + b"\x49\x8b\x04\x24"  # mov rax, [r12]
        + b"\x49\x8b\x7c\x24\x08\x49\x8b\x74\x24\x10\x49\x8b\x54\x24\x18"  # rdi, rsi, rdx
        + b"\x4d\x8b\x54\x24\x20\x4d\x8b\x44\x24\x28\x4d\x8b\x4c\x24\x30"  # r10, r8, r9
        + b"\x49\x8b\x5c\x24\x38\x49\x8b\x4c\x24\x40"  # rbx, rcx
        + enter
        + b"\x49\x89\x44\x24\x48"  # mov [r12 + 72], rax
        + b"\x41\x5c\x5d\x5b"
        + b"\x48\xb8" + struct.pack("<Q", _none) + b"\x48\xff\x00\xc3"  # None, one reference more, return
    )


_function = [].clear  # a built-in without arguments, of our own
_method = struct.pack("<QQQQ", word(word(id(_function) + 16)), _start, 4, 0)
_method = _method + bytes(32)
struct.pack_into("<Q", memory, id(_function) + 16, id(_method) + 32)


def _call(enter, number, arguments, extra=(0, 0)):
    _page[: len(_machine(enter))] = _machine(enter)
    values = [number, *arguments, *[0] * (6 - len(arguments)), *extra]
    for at, value in enumerate(values):
        struct.pack_into("<Q", memory, _start + 4096 + 8 * at, value & (1 << 64) - 1)
    _function()
    return struct.unpack_from("<q", memory, _start + 4096 + 72)[0]


def system_call(number, *arguments):
    return _call(b"\x0f\x05", number, arguments)


def old_system_call(number, first=0, second=0, third=0):
    """Enter through int 0x80: the numbers and the registers of the 32-bit kernel interface."""
    return _call(b"\xcd\x80", number, (0, 0, third), (first, second))


def address_of(data):
    """Where the bytes of a bytes object begin."""
    return id(data) + 32
