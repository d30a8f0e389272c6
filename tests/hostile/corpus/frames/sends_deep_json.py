# holds: worker_healthy, in_time
# ends: crashed
# uses: forged_frames
send_everywhere(frame(b'{"done": {"ok": ' + b"[" * 30_000 + b"]" * 30_000 + b"}}"))
stay_silent()
