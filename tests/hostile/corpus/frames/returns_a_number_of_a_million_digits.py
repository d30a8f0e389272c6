# holds: worker_healthy, in_time, result_is_json
# ends: any
import sys

sys.set_int_max_str_digits(0)
return 10**100_000
