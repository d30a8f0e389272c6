# holds: worker_healthy
# ends: crashed
# uses: forged_frames
send_everywhere(frame(b'{"done": {"ok": "\xff\xfe\x80"}}'))
stay_silent()
