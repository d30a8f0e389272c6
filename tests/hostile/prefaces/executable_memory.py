# Machine code of our own: four ways to memory that may be both filled and executed.
import mmap
import os


def _by_protection():
    page = mmap.mmap(-1, 8192)
    if library_call("mprotect", word(id(page) + 16), 8192, 7) != 0:
        raise OSError("mprotect")
    return page, word(id(page) + 16)


def _by_file(handle):
    os.ftruncate(handle, 8192)
    writable = mmap.mmap(handle, 8192)
    executable = library_call("mmap", 0, 8192, 5, 1, handle, 0)
    if executable == -1:
        raise OSError("mmap of a file")
    return writable, executable


def _executable():
    for way in (
        lambda: mmap.mmap(-1, 8192, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC),
        _by_protection,
        lambda: _by_file(os.open("/tmp/code", os.O_RDWR | os.O_CREAT, 0o700)),
        lambda: _by_file(os.memfd_create("code")),
    ):
        try:
            page = way()
            return page if isinstance(page, tuple) else (page, word(id(page) + 16))
        except OSError as error:
            print(error)
    raise OSError("no executable memory")


_page, _start = _executable()
_table = word(id(_page) + 16) + 4096
_none = id(None)


def _machine(enter):
    """Load six registers and the number from the second page, enter the kernel, store the answer, return None."""
    return (
        b"\x53\x55\x41\x54"  # push rbx, rbp, r12
        + b"\x49\xbc"
        + struct.pack("<Q", _table)  # mov r12, table
        + b"\x49\x8b\x04\x24"  # mov rax, [r12]
        + b"\x49\x8b\x7c\x24\x08\x49\x8b\x74\x24\x10\x49\x8b\x54\x24\x18"  # rdi, rsi, rdx
        + b"\x4d\x8b\x54\x24\x20\x4d\x8b\x44\x24\x28\x4d\x8b\x4c\x24\x30"  # r10, r8, r9
        + b"\x49\x8b\x5c\x24\x38\x49\x8b\x4c\x24\x40"  # rbx, rcx
        + enter
        + b"\x49\x89\x44\x24\x48"  # mov [r12 + 72], rax
        + b"\x41\x5c\x5d\x5b"
        + b"\x48\xb8"
        + struct.pack("<Q", _none)
        + b"\x48\xff\x00\xc3"  # None, one reference more, return
    )


_function = [].clear  # a built-in without arguments, of our own
_method = struct.pack("<QQQQ", word(word(id(_function) + 16)), _start, 4, 0) + bytes(32)
write_word(id(_function) + 16, address_of(_method))


def enter_kernel(instruction, number, arguments=(), extra=(0, 0)):
    _page[: len(_machine(instruction))] = _machine(instruction)
    for at, value in enumerate([number, *arguments, *[0] * (6 - len(arguments)), *extra]):
        write_word(_table + 8 * at, value)
    _function()
    return struct.unpack_from("<q", memory, _table + 72)[0]


def old_system_call(number, first=0, second=0, third=0):
    """Enter through int 0x80: the numbers and the registers of the 32-bit kernel interface."""
    return enter_kernel(b"\xcd\x80", number, (0, 0, third), (first, second))
