# holds: host_memory_bounded, in_time, calls_declared
# ends: any
# uses: forged_frames
flood = frame({"calls": [{"i": 0, "tool": "mail.send", "args": {}}]}) * 500
while True:
    send_everywhere(flood, range(3, 64))
