# holds: secret_kept
# ends: any
# uses: memory_access, library_calls
import re

for start in (word(id(type) + 8) & ~0xFFF, id(int) & ~0xFFF, SYMBOLS["syscall"] & ~0xFFF):
    try:
        print(set(re.findall(rb"[\w-]*canary[\w-]*", bytes(memory[start : start + (1 << 16)]))))
    except BaseException as error:
        print(error)
return "tried"
