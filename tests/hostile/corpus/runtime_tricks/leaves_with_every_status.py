# holds: worker_healthy, nothing_left
# ends: crashed
import os

await mail.send(to="somebody")
os._exit(159)
