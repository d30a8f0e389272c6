# holds: in_time
# ends: crashed
# uses: forged_frames
import signal

send_everywhere(struct.pack(">I", 1000) + b'{"done"')
while True:
    signal.pause()
