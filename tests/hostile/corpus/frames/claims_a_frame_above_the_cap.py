# holds: host_memory_bounded, in_time
# ends: crashed
# uses: forged_frames
send_everywhere(struct.pack(">I", (1 << 20) + 1))
send_everywhere(b" " * 60_000)
return "honest"
