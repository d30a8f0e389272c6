# holds: files_unchanged, no_breach
# ends: any
import errno

written = 0
for number in range(10_000):
    try:
        with open(f"/tmp/file{number}", "wb", buffering=0) as opened:
            while True:
                written += opened.write(bytes(1 << 16))
    except OSError as error:
        print(errno.errorcode[error.errno], written)
        if error.errno not in (errno.EFBIG,):
            break
if written > 100 << 20:
    proved(f"{written} bytes")
return written
