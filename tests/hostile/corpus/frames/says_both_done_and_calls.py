# holds: worker_healthy, calls_declared
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"done": {"ok": 1}, "calls": [{"i": 0, "tool": "mail.send", "args": {}}]}))
stay_silent()
