# holds: worker_healthy, error_is_one_line
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"done": {}}))
stay_silent()
