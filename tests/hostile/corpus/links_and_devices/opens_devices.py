# holds: no_breach
# ends: finished
import os

NAMES = """mem kmem port kmsg sda vda nvme0n1 loop0 loop-control dm-0 mapper/control fuse kvm net/tun ptmx pts/0 tty
console tty0 hwrng random urandom zero null full shm mqueue input/event0 snapshot userfaultfd vhost-net uinput""".split()
for name in NAMES:
    try:
        handle = os.open("/dev/" + name, os.O_RDONLY | os.O_NONBLOCK)
        proved("/dev/" + name)
        os.close(handle)
    except OSError:
        pass
print(os.path.isdir("/dev") and os.listdir("/dev"))
return "tried"
