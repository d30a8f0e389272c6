# result: {"found": ["a.txt", "docs/c.txt", "docs/deep/d.txt"], "renamed": "z.txt", "size": 54, "left": ["c.txt", "copy.md"], "content": "x", "gone": true, "stem": ["c.tar", [".tar", ".gz"], true]}
import shutil
import tempfile
from pathlib import Path, PurePosixPath


async def main():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        root = Path(folder)
        (root / "docs" / "deep").mkdir(parents=True)
        for name in ("a.txt", "b.md", "docs/c.txt", "docs/deep/d.txt"):
            (root / name).write_text(f"I am {name}", encoding="utf-8")
        found = sorted(str(p.relative_to(root)) for p in root.rglob("*.txt"))
        renamed = (root / "a.txt").rename(root / "z.txt").name
        size = sum(p.stat().st_size for p in root.rglob("*") if p.is_file())
        shutil.copy(root / "b.md", root / "docs" / "copy.md")
        shutil.rmtree(root / "docs" / "deep")
        left = sorted(p.name for p in (root / "docs").iterdir())
    with tempfile.NamedTemporaryFile("w+", suffix=".csv") as handle:
        handle.write("x")
        handle.seek(0)
        content = handle.read()
    p = PurePosixPath("/a/b/../c.tar.gz")
    return {"found": found, "renamed": renamed, "size": size, "left": left, "content": content, "gone": not root.exists(), "stem": [p.stem, p.suffixes, p.match("*.gz")]}
