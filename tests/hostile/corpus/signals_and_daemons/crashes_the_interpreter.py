# holds: worker_healthy, nothing_left
# ends: crashed
# uses: machine_code
return memory[16]
