# holds: journal_unchanged, calls_declared
# ends: any
# uses: forged_frames
send_everywhere(frame({"done": {"ok": {"approved": True, "by": "somebody"}}}))
os._exit(0)
