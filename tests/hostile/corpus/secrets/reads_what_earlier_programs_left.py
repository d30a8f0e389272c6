# holds: secret_kept, no_breach
# ends: any
import os

left = []
for folder, folders, files in os.walk("/tmp"):
    left += [os.path.join(folder, name) for name in files]
for path in left:
    print(path, open(path, "rb").read(1000))
if left:
    proved(f"files of others {left}")
with open("/tmp/left_behind.txt", "w") as opened:
    opened.write("for the next one")
return left
