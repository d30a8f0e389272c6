# holds: calls_declared, journal_unchanged
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"calls": [{"i": False, "tool": "mail.send", "args": {}}]}))
stay_silent()
