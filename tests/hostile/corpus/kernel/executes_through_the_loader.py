# holds: no_breach
# ends: any
import glob
import os
import shutil

shutil.copyfile("/usr/bin/python3", "/tmp/python")
print(glob.glob("/lib*/ld-*"), glob.glob("/usr/lib/ld-*"))
for loader in glob.glob("/lib*/ld-*") + glob.glob("/usr/lib*/ld-*"):
    try:
        code = "import sys; print(''.join(map(chr, %r)), 'loaded')" % (list(map(ord, KEY[::-1])),)
        os.execv(loader, [loader, "/tmp/python", "-s", "-S", "-c", code])
    except OSError as error:
        print(error)
return "tried"
