# holds: output_bounded, host_memory_bounded
# ends: crashed
return ["x" * 1000] * 50_000
