# holds: worker_healthy, nothing_left
# ends: crashed
# uses: memory_access, library_calls
return memory[16]
