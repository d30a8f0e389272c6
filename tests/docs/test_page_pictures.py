"""The pictures of the page show it as it is now."""

from docs.page_pictures import SHOTS, take
from docs.pictures import fault_of
from tests.engine import share_images


async def test_what_the_pictures_of_the_page_show_is_what_the_page_shows(tmp_path):
    shown = await take(share_images(tmp_path / "home"))

    assert set(shown) == {shot.name for shot in SHOTS}
    assert [fault for name, text in shown.items() if (fault := fault_of(name, text))] == []
