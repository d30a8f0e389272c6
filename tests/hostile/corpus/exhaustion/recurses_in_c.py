# holds: in_time
# ends: any
import sys

sys.setrecursionlimit(1 << 30)
nested = ()
for _ in range(1_000_000):
    nested = (nested,)
return repr(nested) == str(hash(nested))
