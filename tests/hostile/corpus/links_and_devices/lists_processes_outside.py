# holds: no_breach
# ends: finished
import os

try:
    seen = [name for name in os.listdir("/proc") if name.isdigit()]
    if str(VICTIM) in seen or len(seen) > 2:
        proved(f"processes {seen}")
except OSError as error:
    print(error)
return "tried"
