# holds: worker_healthy, in_time, nothing_left
# ends: crashed
import os

os.closerange(0, 1024)
return await mail.send(to="nobody")
