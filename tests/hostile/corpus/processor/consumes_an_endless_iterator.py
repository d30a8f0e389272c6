# holds: in_time
# ends: crashed
from collections import deque
from itertools import count, repeat

deque(repeat(None), maxlen=0)
return max(count())
