# holds: in_time
# ends: crashed
import sys

sys.set_int_max_str_digits(0)
return str(7**20_000_000)
