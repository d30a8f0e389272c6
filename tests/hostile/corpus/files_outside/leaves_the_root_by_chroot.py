# holds: secret_kept
# ends: any
# uses: memory_access, library_calls
import os

try:
    os.mkdir("/tmp/inner")
    os.chroot("/tmp/inner")
except OSError as error:
    print(error)
folder = os.open("/", os.O_RDONLY)
print(system_call(161, address_of(b"/tmp/inner\0")))
system_call(81, folder)
for _ in range(20):
    system_call(80, address_of(b"..\0"))
print(system_call(161, address_of(b".\0")))
print(open(CANARY + "/secret.txt").read())
return "tried"
