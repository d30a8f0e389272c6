# holds: secret_kept
# ends: any
import sys

frame_below, said = sys._getframe(), []
while frame_below:
    said.append([frame_below.f_code.co_filename, repr(frame_below.f_locals)[:2000], sorted(map(str, frame_below.f_globals))])
    frame_below = frame_below.f_back
print(said)
return said
