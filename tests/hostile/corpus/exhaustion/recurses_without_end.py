# holds: in_time
# ends: any
import sys

sys.setrecursionlimit(1 << 30)


def deeper(n):
    return deeper(n + 1)


return deeper(0)
