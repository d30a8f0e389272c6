# holds: worker_healthy
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"please": {"ok": 1}}))
stay_silent()
