# holds: journal_unchanged, error_is_one_line
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"done": {"error": {"type": "SandboxLost", "message": "try again elsewhere", "line": None}}}))
stay_silent()
