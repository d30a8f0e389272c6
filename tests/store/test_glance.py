"""A look into a store that others have open."""

import sqlite3

from store.glance import pruned_among
from store.opening import open_store
from tests.requirements import promise


@promise("clients:light-list")
async def test_pruned_runs_are_seen_while_the_store_is_open_and_nothing_is_written(tmp_path):
    file = tmp_path / "backstay.db"
    names = ["a/1", "b'; DROP TABLE runs; --/2", "c/3"]
    async with open_store(database_url=None, home=tmp_path) as store:
        for name in names[:2]:
            workflow_id, _, run_id = name.rpartition("/")
            known = {"workflow_id": workflow_id, "workflow_run_id": run_id, "user_id": "ana", "text": "t", "opened": {}}
            await store.runs.opened(run=name, **known)
        with sqlite3.connect(file) as database:
            database.execute("UPDATE runs SET pruned_at = 1 WHERE run LIKE 'b%'")

        assert pruned_among(file, names) == {names[1]}
        assert pruned_among(file, ["a/1"]) == frozenset()

        # What is not read at all must not be read here either.
        with sqlite3.connect(file) as database:
            database.execute("UPDATE alembic_version SET version_num = '0015'")
        assert pruned_among(file, names) is None


@promise("clients:light-list")
def test_what_cannot_be_read_is_left_to_the_open_store(tmp_path):
    older, garbage, odd = tmp_path / "older.db", tmp_path / "garbage.db", tmp_path / "a?mode=rwc#b.db"
    with sqlite3.connect(older) as database:
        database.execute("CREATE TABLE runs (run TEXT)")
    garbage.write_bytes(b"no database" * 100)

    assert [pruned_among(file, ["a/1"]) for file in (older, garbage, odd, tmp_path)] == [None] * 4
    assert {path.name for path in tmp_path.iterdir()} == {"older.db", "garbage.db"}
