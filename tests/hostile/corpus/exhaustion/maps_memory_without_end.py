# holds: memory_bounded, in_time
# ends: any
import mmap

kept = []
while True:
    block = mmap.mmap(-1, 1 << 24)
    for at in range(0, 1 << 24, 4096):
        block[at] = 1
    kept.append(block)
