# holds: secret_kept
# ends: any
import os

found = {}
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if name not in ("usr", "sys", "proc", "dev")]
    for name in files:
        path = os.path.join(folder, name)
        try:
            if os.path.getsize(path) < 2000 and len(found) < 200:
                found[path] = open(path, errors="replace").read()
        except OSError:
            pass
return found
