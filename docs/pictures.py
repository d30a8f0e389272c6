"""Keep beside each picture what can be read in it, and note in the picture of what it was taken.

A test compares both with what is shown now, so that no picture stays that shows something else.
"""

import hashlib
import struct
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
_LOOKS = {
    "page": ROOT / "gateways" / "web" / "static" / "page.css",
    "slack": ROOT / "docs" / "slack_blocks.html.j2",
    "dashboard": ROOT / "docs" / "dashboard" / "dashboard.html.j2",
}
"""What decides how pictures look, by how their names begin."""
_NOTE = b"tEXtShows\0"
_LAST_CHUNK = 12
"""How many bytes the chunk takes that ends a PNG."""


def keep(name: str, text: str) -> None:
    """Write what can be read in a picture that was just taken beside it, and note that in the picture."""
    picture = IMAGES / f"{name}.png"
    data, note = picture.read_bytes(), _NOTE + _digest(name, text)
    chunk = struct.pack(">I", len(note) - 4) + note + struct.pack(">I", zlib.crc32(note))
    picture.write_bytes(data[:-_LAST_CHUNK] + chunk + data[-_LAST_CHUNK:])
    (IMAGES / f"{name}.txt").write_text(text, encoding="utf-8")


def fault_of(name: str, text: str) -> str:
    """Return why a picture does not show what can be read there now; empty when it does."""
    picture = IMAGES / f"{name}.png"
    kept = (IMAGES / f"{name}.txt").read_text(encoding="utf-8")
    if same(text, kept) and _NOTE + _digest(name, kept) in picture.read_bytes()[-1000:]:
        return ""
    return f"{picture.name} shows something else; take the pictures anew with `make screenshots`, and look at them"


def same(text: str, other: str) -> bool:
    """Return whether two texts hold the same lines; calls that are made at once may come in any order."""
    return sorted(text.splitlines()) == sorted(other.splitlines())


def _digest(name: str, text: str) -> bytes:
    looks = _LOOKS.get(name.partition("-")[0])
    drawn = "" if looks is None else looks.read_text(encoding="utf-8")
    return hashlib.sha256(f"{text}\0{drawn}".encode()).hexdigest().encode()
