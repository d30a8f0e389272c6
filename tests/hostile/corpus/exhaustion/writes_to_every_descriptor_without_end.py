# holds: output_bounded, host_memory_bounded, in_time
# ends: crashed
import os

block = b"x" * 65536
numbers = list(range(1024))
while numbers:
    for number in list(numbers):
        try:
            os.write(number, block)
        except OSError:
            numbers.remove(number)
return "nothing to write to"
