# holds: files_unchanged
# ends: finished
import json
import os
import sys

for path in (json.__file__, os.__file__, sys.executable, "/usr/bin/python3", "/usr/lib/backstay/runner.py"):
    for attempt in (
        lambda path=path: open(path, "r+b").write(b"import os\n"),
        lambda path=path: os.chmod(path, 0o777),
        lambda path=path: os.unlink(path),
        lambda path=path: os.rename(path, path + ".old"),
    ):
        try:
            attempt()
        except OSError as error:
            print(error)
for folder in sys.path + ["/usr/lib/backstay", os.path.dirname(os.__file__)]:
    try:
        open(os.path.join(folder, "sitecustomize.py"), "w").write("print(1)")
    except OSError as error:
        print(error)
return "tried"
