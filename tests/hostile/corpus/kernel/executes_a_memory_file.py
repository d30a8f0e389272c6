# holds: no_breach
# ends: any
# uses: memory_access, library_calls
import os
import struct

# The smallest program there is: it writes the proof itself and leaves.
SAID = ("proof " + KEY[::-1] + " executed\n").encode()
CODE = bytes.fromhex("b801000000bf02000000488d3510000000ba") + struct.pack("<I", len(SAID)) + bytes.fromhex("0f05b83c00000031ff0f05")
START = 0x400000
HEADER = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, START + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
SIZE = 120 + len(CODE) + len(SAID)
TINY = HEADER + struct.pack("<IIQQQQQQ", 1, 5, 0, START, START, SIZE, SIZE, 4096) + CODE + SAID
for flags in (0, 1, 0x10):
    handle = system_call(319, address_of(b"x\0"), flags)
    if handle >= 0:
        os.write(handle, TINY)
        nothing = bytes(8)
        system_call(322, handle, address_of(b"\0"), address_of(nothing), address_of(nothing), 0x1000)
return "tried"
