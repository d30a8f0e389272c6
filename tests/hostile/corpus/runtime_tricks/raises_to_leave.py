# holds: worker_healthy
# ends: any
import sys

sys.exit("leaving\nnow")
