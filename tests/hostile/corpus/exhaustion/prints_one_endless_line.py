# holds: output_bounded, host_memory_bounded
# ends: crashed
import sys

for _ in range(200):
    sys.stdout.write("y" * 1_000_000)
    sys.stderr.write("z" * 1_000_000)
return "printed"
