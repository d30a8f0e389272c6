# holds: journal_unchanged, calls_declared
# ends: crashed
# uses: forged_frames
await mail.send(to="honest")
send_everywhere(frame({"calls": [{"i": 0, "tool": "mail.send", "args": {"to": "again"}}]}))
stay_silent()
