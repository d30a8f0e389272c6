# holds: host_memory_bounded, in_time
# ends: any
# uses: forged_frames
flood = frame({"done": {"ok": "x" * 1000}}) * 50
for _ in range(500):
    send_everywhere(flood, range(3, 64))
return "honest"
