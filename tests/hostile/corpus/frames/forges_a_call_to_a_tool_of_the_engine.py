# holds: calls_declared
# ends: crashed
# uses: forged_frames
for name in ("engine.run_program", "engine.approve", "engine", "mail", "mail.", ".send", "mail.send ", "MAIL.SEND", "mail/send"):
    send_everywhere(frame({"calls": [{"i": 0, "tool": name, "args": {}}]}))
return "honest"
