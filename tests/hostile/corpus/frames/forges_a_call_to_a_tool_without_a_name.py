# holds: calls_declared
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"calls": [{"i": 0, "tool": "", "args": {}}]}))
stay_silent()
