# holds: worker_healthy, in_time
# ends: crashed
# uses: forged_frames
send_everywhere(frame(b'{"calls": [{"i": 0, "tool": "mail.send", "args": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}]}"))
stay_silent()
