# holds: host_memory_bounded, in_time
# ends: crashed
# uses: forged_frames
send_everywhere(struct.pack(">I", 0xFFFFFFFF) + b'{"done": {"ok": 1}}')
stay_silent()
