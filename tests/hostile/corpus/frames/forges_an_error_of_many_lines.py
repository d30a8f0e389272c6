# holds: text_is_text, error_is_one_line
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"done": {"error": {"type": "Approved\nby: root", "message": "line\r\nline\u2028line\x1b[2J", "line": "x"}}}))
stay_silent()
