"""The pictures of the page show it as it is now."""

from docs.page_pictures import SHOTS, same, take
from tests.engine import ROOT, share_images

IMAGES = ROOT / "docs" / "images"
STALE = "docs/images/{} shows the page as it was; take the pictures anew with `make screenshots`, and look at them"


async def test_what_the_pictures_of_the_page_show_is_what_the_page_shows(tmp_path):
    shown = await take(share_images(tmp_path / "home"))

    assert {shot.name for shot in SHOTS if not (IMAGES / f"{shot.name}.png").is_file()} == set()
    stale = [
        name for name, text in shown.items() if not same(text, (IMAGES / f"{name}.txt").read_text(encoding="utf-8"))
    ]
    assert not stale, "\n".join(STALE.format(f"{name}.png") for name in stale)
