"""Read the pictures and PDFs that are attached to a task."""

import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backstay.errors import TaskInvalid
from backstay.shown import one_line
from backstay.task.attachment import MOST_ATTACHED
from backstay.task.media import MOST_BYTES, Media, media_of


def read_attached(files: Sequence[Path]) -> list[tuple[dict[str, Any], bytes]]:
    """Return files as a task names them, each with its bytes; raises TaskInvalid for what no model can be shown."""
    if len(files) > MOST_ATTACHED:
        raise TaskInvalid(f"attach: {len(files)} files, and {MOST_ATTACHED} are the most; leave some out")
    return [_read(path) for path in files]


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    shown = one_line(str(path), 200)
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TaskInvalid(f"attach: {shown} cannot be read: {error.strerror}; correct the path") from None
    media = shown_or_refused(data, "", path.name, f"attach: {shown}")
    return {"name": one_line(path.name, 80), "media_type": media.mime}, data


def shown_or_refused(data: bytes, claimed: str, name: str, where: str) -> Media:
    """Return what is attached; raises TaskInvalid, beginning with `where`, for what no model can be shown."""
    claimed = claimed or mimetypes.guess_type(name)[0] or ""
    media = media_of(data, claimed, name)
    if media is None:
        raise TaskInvalid(f"{where}: is not a picture or PDF; give text as the task's own, or as its `input`")
    if media.fault:
        other = ", or print it to a new PDF" if media.kind == "pdf" else ""
        raise TaskInvalid(f"{where}: {media.fault}; attach another file{other}")
    return media
