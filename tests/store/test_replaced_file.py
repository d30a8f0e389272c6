"""A database file that is deleted or replaced while it is open takes no more intents: they would be forgotten."""

import shutil

import pytest

from backstay.errors import StoreUnavailable
from store.opening import open_store
from tests.requirements import promise
from tests.store.test_begin import FIRST, ONCE

SECOND = FIRST.model_copy(update={"effect_id": "w/r/2", "n": 2})


@promise("workers:home")
@pytest.mark.parametrize("deed", ["deleted", "replaced"])
async def test_nothing_is_written_into_a_file_that_nobody_else_sees(tmp_path, deed):
    home = tmp_path / "home"
    async with open_store(database_url=None, home=home) as store:
        assert (await store.effects.begin(FIRST, attempt=1, **ONCE)).kind == "go"
        shutil.move(home, tmp_path / "away")
        if deed == "replaced":
            async with open_store(database_url=None, home=home):
                pass
        with pytest.raises(StoreUnavailable, match=rf"backstay\.db was {deed} .*under a running worker"):
            await store.effects.begin(SECOND, attempt=1, **ONCE)
        shutil.rmtree(home, ignore_errors=True)
        shutil.move(tmp_path / "away", home)
        assert (await store.effects.begin(SECOND, attempt=1, **ONCE)).kind == "go"
