"""Which models take pictures and PDFs, and as what these are counted; models.yaml overrules the list here."""

from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache

from activities.endpoints.models_file import Detected
from activities.media.parts import Sight
from backstay.data_files import data_beside


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
