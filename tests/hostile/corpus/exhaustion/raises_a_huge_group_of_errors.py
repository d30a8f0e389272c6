# holds: output_bounded, host_memory_bounded
# ends: crashed
raise ExceptionGroup("many", [ValueError("line one\nline two\r" * 100) for _ in range(2000)])
