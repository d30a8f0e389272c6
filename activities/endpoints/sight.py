"""Which models take pictures and PDFs, and as what these are counted; models.yaml overrules the list here."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache

from activities.endpoints.models_file import Detected
from backstay.data_files import data_beside
from backstay.task.media import Media

_NO_IMAGES, _NO_PDFS = "this model takes no pictures", "this model takes no PDFs"


@dataclass(frozen=True)
class Sight:
    """Say what a model takes besides text, and what that is reckoned at."""

    images: bool = False
    pdfs: bool = False
    side: int = 1568
    """The longest side of a picture, in pixels."""
    image_tokens: int = 6000
    """The most that a picture counts for."""
    page_tokens: int = 12_000
    """The most that a page of a PDF counts for: its text, unless the file holds more, and a picture of it."""

    def takes(self, media: Media) -> str:
        """Return why a model takes no such thing; empty where it does."""
        if media.kind == "pdf":
            return "" if self.pdfs else _NO_PDFS
        return "" if self.images else _NO_IMAGES

    def worst(self, media: Media) -> int:
        """Return as how many tokens it can be counted at most."""
        if media.kind == "image":
            return self.image_tokens
        # No byte of text is more than one token, and a page may hold any amount of it.
        return max(max(media.pages, 1) * self.page_tokens, media.text)


@cache
def known_sight(model: str) -> Sight:
    """Return what a model takes, by what endpoints call it."""
    name = model.lower().rpartition("/")[2]
    for row in data_beside(__file__)["models"]:
        if any(fnmatchcase(name, known) for known in row["names"]):
            return Sight(**{field: value for field, value in row.items() if field != "names"})
    return Sight()


def sight_of(
    model: str,
    *,
    images: Detected = "auto",
    pdfs: Detected = "auto",
    side: int | None = None,
    tokens: int | None = None,
) -> Sight:
    """Return what a model takes, as the operator says, else as is known of it."""
    found = known_sight(model)
    sight = replace(
        found,
        images=found.images if images == "auto" else images,
        pdfs=found.pdfs if pdfs == "auto" else pdfs,
    )
    if side is not None:
        sight = replace(sight, side=side)
    return sight if tokens is None else replace(sight, image_tokens=tokens, page_tokens=max(tokens, sight.page_tokens))
