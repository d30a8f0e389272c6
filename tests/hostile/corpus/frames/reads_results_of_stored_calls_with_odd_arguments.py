# holds: calls_declared
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"calls": [{"i": 0, "tool": "engine.result", "args": {"ref": "a", "b": 1}}]}))
stay_silent()
