# holds: in_time
# ends: crashed
import re

return bool(re.match(r"^(a+)+$", "a" * 60 + "!"))
