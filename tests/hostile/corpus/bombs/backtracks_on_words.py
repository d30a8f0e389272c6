# holds: in_time
# ends: crashed
import re

return bool(re.search(r"(\w*\s*)*=(\w*\s*)*;", "word " * 4000))
