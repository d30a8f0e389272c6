# holds: calls_declared, text_is_text
# ends: crashed
# uses: forged_frames
send_everywhere(frame(b'{"calls": [{"i": 0, "tool": "mail.send", "args": {"to": "\\ud800"}}]}'))
stay_silent()
