# holds: memory_bounded, in_time
# ends: any
import io
import zipfile

inner = io.BytesIO()
with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
    for number in range(20):
        archive.writestr(f"{number}.txt", bytes(4 << 20))
print(len(inner.getvalue()))
kept = []
while True:
    with zipfile.ZipFile(inner) as archive:
        kept += [archive.read(name) for name in archive.namelist()]
        archive.extractall("/tmp/out")
