# holds: secret_kept
# ends: any
# uses: memory_access, library_calls
import os

handle = system_call(434, VICTIM, 0)
for number in range(10):
    taken = system_call(438, handle, number, 0)
    if taken >= 0:
        print(os.read(taken, 100))
        proved("descriptor")
return "tried"
