# holds: worker_healthy, nothing_left
# ends: any
import os

print("half a line", end="")
os._exit(0)
