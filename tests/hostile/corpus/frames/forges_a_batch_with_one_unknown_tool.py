# holds: calls_declared
# ends: crashed
# uses: forged_frames
calls = [{"i": n, "tool": "mail.send", "args": {}} for n in range(5)]
calls[3]["tool"] = "bank.transfer"
send_everywhere(frame({"calls": calls}))
stay_silent()
