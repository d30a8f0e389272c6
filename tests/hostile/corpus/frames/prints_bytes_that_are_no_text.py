# holds: text_is_text, worker_healthy
# ends: any
import os
import sys

for number in (1, 2):
    os.write(number, bytes(range(256)) * 4)
sys.stdout.buffer.write(b"\xff\xfe\x00\x80")
return "tried"
