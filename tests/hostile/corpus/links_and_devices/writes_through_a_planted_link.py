# holds: files_unchanged
# ends: finished
import os

for number, target in enumerate((CANARY + "/keep.txt", CANARY + "/" + MARK, CANARY + "/folder")):
    link = f"/tmp/link{number}"
    try:
        os.symlink(target, link)
        path = link if os.path.isdir(link) is False else link + "/inside"
        with open(path, "w") as opened:
            opened.write("through the link")
    except OSError as error:
        print(error)
return "tried"
