"""What one effect did to a workspace: recorded before it begins and when it has ended."""

import hashlib
from pathlib import Path
from typing import Any

from backstay.noun import Noun
from sandbox.durable_file import read_json, remove_durably, write_durably


class Written(Noun):
    """Tell what an effect found, and what it left and answered once it has ended."""

    effect: str
    tool: str
    before: str
    """The snapshot that was taken before it."""
    after: str | None = None
    answer: dict[str, Any] | None = None
    """None: it has not ended, or was cut off."""


class WrittenEffects:
    """Keep what effects did to one workspace."""

    def __init__(self, folder: Path) -> None:
        """Keep the records in this folder."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, effect: str) -> Written | None:
        """Return what is recorded of an effect."""
        said = read_json(self._place(effect))
        return None if said is None else Written.model_validate(said)

    def unfinished(self) -> Written | None:
        """Return the effect that has begun and not ended; there is at most one at a time."""
        said = read_json(self._folder / "unfinished")
        return None if said is None else Written.model_validate(said)

    def begin(self, written: Written) -> None:
        """Record that an effect begins."""
        write_durably(self._folder / "unfinished", written.plain())

    def finish(self, written: Written) -> None:
        """Record how it ended."""
        write_durably(self._place(written.effect), written.plain())
        remove_durably(self._folder / "unfinished")

    def drop(self) -> None:
        """Forget the effect that has begun, since nothing of it is left."""
        remove_durably(self._folder / "unfinished")

    def _place(self, effect: str) -> Path:
        return self._folder / f"{hashlib.sha256(effect.encode()).hexdigest()}.json"
