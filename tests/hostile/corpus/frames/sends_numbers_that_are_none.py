# holds: worker_healthy, calls_declared
# ends: crashed
# uses: forged_frames
send_everywhere(frame(b'{"calls": [{"i": 0, "tool": "mail.send", "args": {"a": NaN, "b": Infinity, "c": -Infinity}}]}'))
stay_silent()
