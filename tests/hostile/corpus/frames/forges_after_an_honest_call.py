# holds: journal_unchanged, calls_declared
# ends: any
# uses: forged_frames
first = await mail.send(to="honest")
send_everywhere(frame({"calls": [{"i": 1, "tool": "bank.transfer", "args": {}}]}))
second = await mail.send(to="honest")
return [first, second]
