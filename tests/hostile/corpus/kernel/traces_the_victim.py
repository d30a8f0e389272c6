# holds: victim_untouched
# ends: crashed
# uses: memory_access, library_calls
for request in (16, 0x4206):
    print(system_call(101, request, VICTIM, 0, 0))
while True:
    pass
