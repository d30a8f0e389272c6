"""The definitions that were last allowed, across workers that share a store."""

import asyncio

from store.definitions import FIRST_SIGHT
from store.opening import open_store
from tests.requirements import promise


def _store(home, database_url):
    return open_store(database_url=database_url, home=home)


def said(names):
    return {name: {"description": name} for name in names}


@promise("tools:changed-pinned")
async def test_of_two_workers_that_meet_a_tool_at_once_the_first_pins_it(tmp_path, database_url):
    async with _store(tmp_path, database_url) as left, _store(tmp_path, database_url) as right:
        changed = await asyncio.gather(
            left.definitions.changed("a", {"mail.send": "1" * 64}, said),
            right.definitions.changed("b", {"mail.send": "2" * 64}, said),
        )
        allowed = await left.definitions.of_tool("mail.send")
    assert sorted(map(len, changed)) == [0, 1]
    assert [(known.allowed_by, known.said) for known in allowed] == [(FIRST_SIGHT, {"description": "mail.send"})]


@promise("tools:changed-forgotten")
async def test_the_last_definitions_stay_allowed_and_older_ones_are_forgotten(tmp_path, database_url):
    async with _store(tmp_path, database_url) as store:
        known = store.definitions
        await known.changed("v", {"mail.send": "0"}, said)
        for digest in ("1", "2", "2", "3", "4"):
            await known.allow("mail.send", digest, {"description": digest}, by="ana")
        assert await known.digests() == {"mail.send": {"0", "1", "2", "3", "4"}}
        await known.allow("mail.send", "5", {"description": "5"}, by="ana")
        assert await known.digests() == {"mail.send": {"1", "2", "3", "4", "5"}}
        assert await known.changed("w", {"mail.send": "0"}, said) == {"mail.send"}


@promise("tools:changed-earlier")
async def test_a_definition_that_an_older_version_allowed_under_another_digest_is_no_change(tmp_path, database_url):
    async with _store(tmp_path, database_url) as store:
        known = store.definitions
        await known.changed("v", {"mail.send": "old"}, said)
        assert await known.changed("u", {"mail.send": "new"}, said, {"mail.send": "other"}) == {"mail.send"}
        assert await known.changed("w", {"mail.send": "new"}, said, {"mail.send": "old"}) == frozenset()
    async with _store(tmp_path, database_url) as store:
        known = store.definitions
        assert await known.changed("w", {"mail.send": "new"}, said, {"mail.send": "other"}) == frozenset()
        assert await known.changed("x", {"mail.send": "newer"}, said, {"mail.send": "other"}) == {"mail.send"}
        old, new = sorted(await known.of_tool("mail.send"), key=lambda allowed: allowed.digest, reverse=True)
    assert (old.digest, new.digest) == ("old", "new")
    assert (old.allowed_by, old.allowed_at) == (new.allowed_by, new.allowed_at)


@promise("tools:changed-looked-up")
async def test_an_unchanged_catalog_is_looked_up_once(tmp_path, database_url):
    async with _store(tmp_path, database_url) as store:
        known = store.definitions
        assert not known.is_unchanged("v")
        assert await known.changed("v", {"mail.send": "0"}, said) == frozenset()
        assert known.is_unchanged("v")
        assert await known.changed("w", {"mail.send": "1"}, said) == {"mail.send"}
        assert not known.is_unchanged("w")
