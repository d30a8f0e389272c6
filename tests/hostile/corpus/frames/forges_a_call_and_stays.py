# holds: journal_unchanged, calls_declared, in_time
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"calls": [{"i": 0, "tool": "mail.send", "args": {"to": "forged"}}]}))
stay_silent()
