# holds: calls_declared, journal_unchanged
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"calls": [{"i": n, "tool": "mail.send", "args": {}} for n in range(5000)]}))
stay_silent()
