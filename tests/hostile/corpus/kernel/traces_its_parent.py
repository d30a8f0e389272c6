# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
import os

for request in (0, 16, 0x4206):
    if system_call(101, request, os.getppid(), 0, 0) == 0:
        proved(f"ptrace {request}")
return "tried"
