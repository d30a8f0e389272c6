# holds: in_time
# ends: any
# uses: forged_frames
send_everywhere(b"\0\0")
os._exit(0)
