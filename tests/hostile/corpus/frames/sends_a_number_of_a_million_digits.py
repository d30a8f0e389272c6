# holds: worker_healthy, in_time
# ends: crashed
# uses: forged_frames
send_everywhere(frame(b'{"done": {"ok": ' + b"9" * 60_000 + b"}}"))
stay_silent()
