# holds: files_unchanged
# ends: any
import io
import tarfile
import zipfile

packed = io.BytesIO()
with zipfile.ZipFile(packed, "w") as archive:
    archive.writestr("../../../.." + CANARY + "/" + MARK, "was here")
    archive.writestr(CANARY + "/" + MARK, "was here")
zipfile.ZipFile(packed).extractall("/tmp")
taped = io.BytesIO()
with tarfile.open(fileobj=taped, mode="w") as archive:
    for name in ("../../../.." + CANARY + "/" + MARK, CANARY + "/" + MARK):
        entry = tarfile.TarInfo(name)
        entry.size = 8
        archive.addfile(entry, io.BytesIO(b"was here"))
    link = tarfile.TarInfo("way")
    link.type, link.linkname = tarfile.SYMTYPE, CANARY
    archive.addfile(link)
    entry = tarfile.TarInfo("way/" + MARK)
    entry.size = 8
    archive.addfile(entry, io.BytesIO(b"was here"))
taped.seek(0)
with tarfile.open(fileobj=taped) as archive:
    for member in archive.getmembers():
        try:
            archive.extract(member, "/tmp")
        except OSError as error:
            print(error)
return "tried"
