# holds: no_breach
# ends: any
import mmap

with open("/tmp/code", "wb") as opened:
    opened.write(bytes(4096))
with open("/tmp/code", "r+b") as opened:
    try:
        mmap.mmap(opened.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        proved("code from a file")
    except OSError as error:
        print(error)
return "tried"
