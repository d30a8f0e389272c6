# Memory without ctypes: an interpreter that trusts its bytecode can be made to read and write any address.
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


def write_word(address, value):
    struct.pack_into("<Q", memory, address, value & (1 << 64) - 1)


def address_of(data):
    """Where the bytes of a bytes object begin."""
    return id(data) + 32
