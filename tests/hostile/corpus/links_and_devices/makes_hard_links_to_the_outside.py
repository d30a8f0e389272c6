# holds: files_unchanged, secret_kept
# ends: finished
import os

for name in ("secret.txt", "keep.txt"):
    try:
        os.link(CANARY + "/" + name, "/tmp/" + name)
        print(open("/tmp/" + name).read())
        open("/tmp/" + name, "a").write("appended")
    except OSError as error:
        print(error)
for place in (CANARY + "/linked.txt",):
    try:
        open("/tmp/own.txt", "w").write("mine")
        os.link("/tmp/own.txt", place)
    except OSError as error:
        print(error)
return "tried"
