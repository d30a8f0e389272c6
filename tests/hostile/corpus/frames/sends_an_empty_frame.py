# holds: worker_healthy
# ends: crashed
# uses: forged_frames
send_everywhere(struct.pack(">I", 0))
stay_silent()
