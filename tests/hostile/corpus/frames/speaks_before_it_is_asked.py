# holds: journal_unchanged, calls_declared
# ends: any
# uses: forged_frames
first = await mail.send(to="honest")
send_everywhere(frame({"calls": [{"i": 1, "tool": "mail.send", "args": {}}]}) + frame({"calls": [{"i": 2, "tool": "mail.send", "args": {}}]}))
return await mail.send(to="honest")
