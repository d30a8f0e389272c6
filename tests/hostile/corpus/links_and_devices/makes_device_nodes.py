# holds: no_breach
# ends: finished
import os
import stat

for name, kind, major, minor in (
    ("mem", stat.S_IFCHR, 1, 1),
    ("zero", stat.S_IFCHR, 1, 5),
    ("kmsg", stat.S_IFCHR, 1, 11),
    ("disk", stat.S_IFBLK, 8, 0),
    ("vda", stat.S_IFBLK, 254, 0),
    ("fuse", stat.S_IFCHR, 10, 229),
    ("tun", stat.S_IFCHR, 10, 200),
):
    try:
        os.mknod("/tmp/" + name, kind | 0o666, os.makedev(major, minor))
        with open("/tmp/" + name, "rb", buffering=0) as opened:
            opened.read(16)
            proved(name)
    except OSError as error:
        print(name, error)
return "tried"
