# holds: secret_kept, victim_untouched
# ends: finished
import re

try:
    for line in open(f"/proc/{VICTIM}/maps"):
        start, end, mode = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
        if mode.startswith("rw"):
            with open(f"/proc/{VICTIM}/mem", "rb", buffering=0) as memory_of:
                memory_of.seek(int(start, 16))
                for word in re.findall(rb"canary[-\w]+", memory_of.read(int(end, 16) - int(start, 16))):
                    print(word)
except OSError as error:
    print(error)
return "tried"
