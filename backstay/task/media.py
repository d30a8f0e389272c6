"""Say what bytes are that somebody calls a picture or a PDF, from the bytes alone, and without decoding them."""

import struct
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from backstay.frozen import Frozen
from backstay.shown import one_line
from backstay.task.pdf import PdfExtent, PdfRefusedError, extent_of

MOST_BYTES = 20_000_000
"""Of one picture or PDF; vendors take little more."""
MOST_PIXELS = 50_000_000
"""Of a picture; one that claims more is not decoded."""
MOST_PAGES = 100
MOST_LISTED = 20
"""Of one answer."""
IMAGE_TOKENS, PAGE_TOKENS = 1_600, 3_000
"""What pictures and pages usually take of what a model can be shown."""
TOKEN_BYTES = 4
"""How many bytes of text usually make a token."""
_SIDE = 1_000_000
_MARKERS = 4_000
_PDF_HEAD = 1024
_CLAIMS = ("image/", "application/pdf")


class Media(Frozen):
    """Describe a picture or a PDF that an answer or a task holds."""

    ref: str = ""
    """Where its bytes are sealed."""
    kind: Literal["image", "pdf"]
    mime: str
    """What its bytes are, whatever its source says of them."""
    bytes: int
    width: int = 0
    height: int = 0
    pages: int = 0
    text: int = 0
    """Bytes of text that a PDF can show at most."""
    name: str = ""
    fault: str = ""
    """Why no model is shown it; empty where it can be shown."""

    @property
    def tokens(self) -> int:
        """Return how much of what a model can be shown it takes, by a usual measure."""
        if self.fault:
            return 0
        return IMAGE_TOKENS if self.kind == "image" else max(self.pages * PAGE_TOKENS, self.text // TOKEN_BYTES)

    @property
    def line(self) -> str:
        """Return what it is, in words."""
        named = f" {self.name}" if self.name else ""
        if self.kind == "pdf":
            return f"the PDF{named} ({self.pages} pages)" if self.pages else f"the PDF{named}"
        size = f", {self.width} by {self.height}" if self.width else ""
        return f"the picture{named} ({self.mime}{size})"


def media_of(data: bytes, claimed: str, name: str = "") -> Media | None:
    """Return what bytes are, or None for what neither is a picture or a PDF nor is called one."""
    said = claimed.strip().lower()
    name = one_line(name, 80)
    found = _picture(data) or _pdf(data)
    if found is None:
        if not said.startswith(_CLAIMS):
            return None
        kind = "pdf" if said.startswith("application/pdf") else "image"
        found = Media(kind=kind, mime=one_line(said, 60), bytes=len(data), fault=_why_unknown(data, kind))
    elif not found.fault and len(data) > MOST_BYTES:
        found = found.model_copy(update={"fault": f"it has {len(data):,} bytes, and {MOST_BYTES:,} are the most"})
    return found.model_copy(update={"name": name})


def _why_unknown(data: bytes, kind: str) -> str:
    if not data:
        return "it is empty"
    if b"<svg" in data[:_PDF_HEAD].lower():
        return "it is a drawing in SVG, which models take as text only"
    return f"its bytes are no {'PDF' if kind == 'pdf' else 'picture of a kind that models take'}"


def _picture(data: bytes) -> Media | None:
    for mime, size_of in _SIZES.items():
        size = size_of(data)
        if size is None:
            continue
        width, height = size
        found = {"kind": "image", "mime": mime, "bytes": len(data), "width": width, "height": height}
        fault = ""
        if not (0 < width < _SIDE and 0 < height < _SIDE):
            fault = "its size makes no sense"
        elif width * height > MOST_PIXELS:
            fault = f"it has {width * height:,} pixels, and {MOST_PIXELS:,} are the most"
        return Media.model_validate({**found, "fault": fault})
    return None


def _png(data: bytes) -> tuple[int, int] | None:
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        return None
    return struct.unpack(">II", data[16:24]) if data[12:16] == b"IHDR" and len(data) >= 33 else (0, 0)


def _gif(data: bytes) -> tuple[int, int] | None:
    if data[:6] not in {b"GIF87a", b"GIF89a"}:
        return None
    return struct.unpack("<HH", data[6:10]) if len(data) > 13 else (0, 0)


def _jpeg(data: bytes) -> tuple[int, int] | None:
    if data[:3] != b"\xff\xd8\xff":
        return None
    place = 2
    for _ in range(_MARKERS):
        if place + 9 > len(data) or data[place] != 0xFF:
            return 0, 0
        marker = data[place + 1]
        if marker == 0xFF:
            place += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return width, height
        place += 2 + (
            0 if 0xD0 <= marker <= 0xD8 or marker == 1 else struct.unpack(">H", data[place + 2 : place + 4])[0]
        )
    return 0, 0


def _webp(data: bytes) -> tuple[int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    if len(data) < 30:
        return 0, 0
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            bits = struct.unpack("<I", data[21:25])[0]
            return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case _:
            return 0, 0


_SIZES = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}


def _pdf(data: bytes) -> Media | None:
    if b"%PDF-" not in data[:_PDF_HEAD]:
        return None
    extent, fault = PdfExtent(0, 0), ""
    if b"/Encrypt" in data:
        fault = "it is encrypted"
    elif len(data) <= MOST_BYTES:
        try:
            extent = extent_of(data)
        except PdfRefusedError as error:
            fault = f"its pages cannot be counted: {error}"
    if extent.pages > MOST_PAGES:
        fault = f"it has {extent.pages:,} pages, and {MOST_PAGES} are the most"
    found = {"kind": "pdf", "mime": "application/pdf", "bytes": len(data), "pages": extent.pages, "text": extent.text}
    return Media.model_validate({**found, "fault": fault})


def media_in(files: Mapping[str, bytes], claims: Mapping[str, str], refs: Mapping[str, str]) -> list[Media]:
    """Return which of the files of an answer are pictures or PDFs, each with the ref of its bytes."""
    found = ((name, media_of(data, claims.get(name, ""))) for name, data in files.items())
    return [media.model_copy(update={"ref": refs[name]}) for name, media in found if media is not None][:MOST_LISTED]


def within(listed: Iterable[Media], most_tokens: int) -> list[dict[str, Any]]:
    """Return what is shown as a transcript keeps it; a file that has no room beside the others says so."""
    found: list[dict[str, Any]] = []
    left = most_tokens
    for media in listed:
        left -= media.tokens
        fault = media.fault or ("" if left >= 0 else "there is no room for it beside what else is shown")
        kept = media.model_copy(update={"fault": fault})
        found.append(kept.model_dump(mode="json", exclude_defaults=True) | {"tokens": kept.tokens})
        left += media.tokens - kept.tokens
    return found
