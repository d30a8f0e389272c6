# holds: worker_healthy, calls_declared
# ends: any
# uses: forged_frames
send_everywhere(frame({"calls": [{"i": 0, "tool": "mail.send", "args": {}}]})[:-20])
return await mail.send(to="the rest")
