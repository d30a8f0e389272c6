# holds: no_breach
# ends: any
import os
import resource

try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
    proved("limit raised")
except (OSError, ValueError) as error:
    print(error)
kept = []
try:
    while len(kept) < 5000:
        kept += os.pipe()
    proved(f"{len(kept)} descriptors")
except OSError as error:
    for number in kept:
        os.close(number)
    print(len(kept), error)
return "tried"
