# holds: calls_declared, journal_unchanged
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"calls": ["mail.send", None, 5, []]}))
stay_silent()
