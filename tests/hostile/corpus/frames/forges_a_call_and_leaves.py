# holds: journal_unchanged, calls_declared, nothing_left
# ends: any
# uses: forged_frames
send_everywhere(frame({"calls": [{"i": 0, "tool": "mail.send", "args": {"to": "forged"}}]}))
os._exit(0)
