"""A store of before the first release is refused wherever it is opened, and left as it is."""

import sqlite3
from contextlib import closing

import pytest
import pytest_asyncio

from store.opening import open_store
from tests.cli.commands import bare, forked
from tests.engine import share_images, toolbox_of
from tests.requirements import promise
from tests.sizes import spread

SLACK = {
    "SLACK_BOT_TOKEN": "xoxb-of-this-test",
    "SLACK_SIGNING_SECRET": "a secret of this test",
    "BACKSTAY_SLACK_CHANNEL": "C0123456789",
    "BACKSTAY_APPROVER_KEY": "an approver key of this test",
}
WAYS = {
    "worker": ("worker", "--role", "runs"),
    "show": ("show", "never-started"),
    "prune": ("prune", "--older-than", "1d", "--dry-run"),
    "epoch": ("store", "new-epoch", "--yes"),
    "lines": ("policy", "list"),
    "page": ("web", "--port", "0"),
    "slack": ("slack", "--port", "0"),
}


@pytest_asyncio.fixture(scope="module")
async def old(tmp_path_factory):
    """A home with such a store and what that holds; every way in must leave it as it is."""
    home = share_images(tmp_path_factory.mktemp("old") / "home")
    async with open_store(database_url=None, home=home):
        pass
    return home, unreleased(home / "backstay.db")


@promise("store:unreleased")
@pytest.mark.parametrize("way", spread(list(WAYS), 4))
async def test_a_store_of_before_the_first_release_is_refused_at_every_way_in(temporal, nursery, old, tmp_path, way):
    home, left = old
    environment = bare(
        TEMPORAL_ADDRESS=temporal.service_client.config.target_host,
        BACKSTAY_HOME=str(home),
        BACKSTAY_TOOLBOX=str(toolbox_of(tmp_path, tmp_path / "mailbox.db")),
        BACKSTAY_TASK_QUEUE=f"queue-of-{tmp_path.name}",
        **(SLACK if way == "slack" else {}),
    )

    done = await forked(nursery, *WAYS[way], environment=environment, folder=tmp_path)

    assert done.code == 2, done.err
    assert f"sqlite:///{home}/backstay.db is a store of revision 0007" in done.err
    assert "Start with a new, empty store" in done.err
    assert tables(home / "backstay.db") == left


def unreleased(file):
    """Make a store one of before the first release, without a table that came later; return what it holds."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '0007'")
        database.execute("DROP TABLE posts")
    return tables(file)


def tables(file):
    with closing(sqlite3.connect(file)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
        return {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in names}
