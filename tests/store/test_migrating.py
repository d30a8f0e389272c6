"""Migrations: the first one is the schema, later ones keep what is there, and no store of before is read."""

import shutil
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

import store.opening
from backstay.errors import SettingsInvalid
from store.database.place import place_of
from store.opening import open_store
from tests.requirements import promise
from tests.store.first_migration import DIALECTS, file_of, statements

SECOND = '''
"""Note how a run was started."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "v2", "v1", None, None


def upgrade():
    op.add_column("runs", sa.Column("started_by", sa.Text, nullable=False, server_default="somebody"))
    op.create_index("runs_by_starter", "runs", ["started_by"])
'''


@promise("store:first-migration")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_first_migration_is_what_is_written_from_the_schema(dialect):
    assert file_of(dialect).read_text(encoding="utf-8") == statements(dialect)


async def opened_run(opened):
    known = {"workflow_id": "task-1", "workflow_run_id": "first", "user_id": "ana", "text": "a task", "opened": {}}
    await opened.runs.opened(run="task-1/first", **known)


async def asked(opened, statement):
    return await opened._database.read(lambda connection: connection.execute(text(statement)).all())


@promise("store:first-migration")
async def test_a_second_migration_keeps_what_is_there_under_a_process_of_before_and_none_opens_it_then(
    tmp_path, monkeypatch, database_url
):
    options = {"database_url": database_url, "home": tmp_path / "home"}
    migrations = tmp_path / "migrations"
    shutil.copytree(store.opening.MIGRATIONS, migrations)
    (migrations / "versions/v2.py").write_text(SECOND, encoding="utf-8")
    async with open_store(**options) as first:
        await opened_run(first)
        with monkeypatch.context() as newer:
            newer.setattr(store.opening, "MIGRATIONS", migrations)
            async with open_store(**options) as second:
                assert second.stamp == first.stamp
                assert await asked(second, "SELECT version_num FROM alembic_version") == [("v2",)]
                assert await asked(second, "SELECT text, started_by FROM runs") == [("a task", "somebody")]
        assert [row.text for row in await first.runs.newest(9)] == ["a task"]
    with pytest.raises(SettingsInvalid, match=r"'v2'.*update backstay"):
        async with open_store(**options):
            pass


async def refused_twice(options):
    """Return why a store is not opened, which is the same at the second try."""
    said = []
    for _ in range(2):
        with pytest.raises(SettingsInvalid) as refused:
            async with open_store(**options):
                pass
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert "Start with a new, empty store" in said[0]
    return said[0]


@promise("store:unreleased")
@pytest.mark.parametrize("revision", ["0001", "0007", "0015"])
async def test_a_store_of_before_the_first_release_is_refused_and_left_as_it_is(
    tmp_path, monkeypatch, database_url, revision
):
    options = {"database_url": database_url, "home": tmp_path}
    async with open_store(**options) as old:
        await opened_run(old)
        await old._database.write(
            lambda connection: connection.execute(
                text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision}
            )
        )
        await old._database.write(lambda connection: connection.execute(text("DROP TABLE posts")))
    assert f"{place_of(database_url, tmp_path).shown} is a store of revision {revision}" in await refused_twice(options)
    monkeypatch.setattr(store.opening, "migrate", lambda *_: None)
    async with open_store(**options) as left:
        assert left.stamp == old.stamp
        assert await asked(left, "SELECT version_num FROM alembic_version") == [(revision,)]
        assert [row.text for row in await left.runs.newest(9)] == ["a task"]
        assert "posts" not in await left._database.read(lambda connection: inspect(connection).get_table_names())


@promise("store:unreleased")
@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ("ALTER TABLE events DROP COLUMN outcome", "events.outcome"),
        ("DROP TABLE endpoint_pauses", "endpoint_pauses.endpoint"),
    ],
)
async def test_a_store_that_an_earlier_state_of_the_first_migration_made_is_refused_and_left_as_it_is(
    tmp_path, database_url, change, lacking
):
    options = {"database_url": database_url, "home": tmp_path}
    async with open_store(**options) as old:
        await old._database.write(lambda connection: connection.execute(text(change)))
    assert f"{place_of(database_url, tmp_path).shown} lacks {lacking}: " in await refused_twice(options)


@promise("store:unreleased")
def test_an_address_is_shown_without_its_password_wherever_that_stands():
    for url in ("postgresql://u:hidden@host/name", "postgresql://u@host/name?password=hidden&host=%2Ftmp"):
        shown = place_of(url, Path()).shown
        assert "hidden" not in shown
        assert "host" in shown
