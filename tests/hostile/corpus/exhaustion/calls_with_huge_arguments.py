# holds: output_bounded, host_memory_bounded
# ends: any
return await mail.send(to="x" * 40_000_000)
