# result: {"back": [true, true, true, true], "small": true, "names": ["a.txt", "dir/b.txt"], "text": "alpha", "bad": null}
import bz2
import gzip
import io
import lzma
import zipfile
import zlib


async def main():
    data = b"all work and no play makes jack a dull boy\n" * 200
    sizes = {name: module.compress(data) for name, module in (("zlib", zlib), ("gzip", gzip), ("bz2", bz2), ("lzma", lzma))}
    back = [module.decompress(sizes[name]) == data for name, module in (("zlib", zlib), ("gzip", gzip), ("bz2", bz2), ("lzma", lzma))]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "alpha")
        archive.writestr("dir/b.txt", data)
    with zipfile.ZipFile(buffer) as archive:
        names = archive.namelist()
        text = archive.read("a.txt").decode()
        bad = archive.testzip()
    return {"back": back, "small": all(len(v) < 400 for v in sizes.values()), "names": names, "text": text, "bad": bad}
