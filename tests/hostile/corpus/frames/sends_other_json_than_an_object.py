# holds: worker_healthy
# ends: crashed
# uses: forged_frames
for value in ([], "done", 5, None, True, [{"done": {"ok": 1}}]):
    send_everywhere(frame(value))
return "honest"
