# holds: worker_healthy
# ends: crashed
# uses: forged_frames
send_everywhere(frame({"please": {"ok": 1}}))
return "honest"
