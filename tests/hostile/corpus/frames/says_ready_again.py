# holds: worker_healthy
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"ready": 1}))
stay_silent()
