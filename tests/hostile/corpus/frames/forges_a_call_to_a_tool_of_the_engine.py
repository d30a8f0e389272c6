# holds: calls_declared
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"calls": [{"i": 0, "tool": "engine.run_program", "args": {"code": "return 1"}}]}))
stay_silent()
