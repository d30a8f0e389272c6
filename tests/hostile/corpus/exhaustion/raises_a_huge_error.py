# holds: output_bounded, host_memory_bounded
# ends: crashed
raise RuntimeError("x" * 30_000_000)
