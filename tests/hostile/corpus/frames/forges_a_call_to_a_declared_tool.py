# holds: journal_unchanged, calls_declared
# ends: any
# uses: forged_frames
send_everywhere(frame({"calls": [{"i": 0, "tool": "mail.send", "args": {"to": "forged"}}]}))
return "honest"
