# holds: in_time
# ends: any
# uses: forged_frames
send_everywhere(struct.pack(">I", 1000) + b'{"done"')
os._exit(0)
