# holds: worker_healthy, in_time, nothing_left
# ends: any
import os

for source in range(0, 64):
    for target in range(0, 64):
        try:
            os.dup2(source, target)
        except OSError:
            pass
return await mail.send(to="somebody")
