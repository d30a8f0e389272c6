"""`backstay store new-epoch`: only on a person's word, and told in numbers."""

import json
import sqlite3

from store.opening import open_store
from tests.cli.commands import BACKSTAY, at_terminal, bare, forked
from tests.requirements import promise


async def made(home):
    async with open_store(database_url=None, home=home) as store:
        return store.identity


@promise("store:retention-epoch")
async def test_a_new_epoch_begins_only_when_it_is_confirmed(tmp_path, nursery):
    old = await made(tmp_path)
    environment = bare(BACKSTAY_HOME=str(tmp_path))

    unasked = await forked(nursery, "store", "new-epoch", environment=environment, folder=tmp_path)
    assert (unasked.code, "--yes: there is no terminal" in unasked.err) == (2, True)
    for answer, code in (("n", 1), ("y", 0)):
        assert (await made(tmp_path)).epoch == old.epoch
        command = (*BACKSTAY, "store", "new-epoch")
        async with at_terminal(*command, environment=environment, folder=tmp_path, nursery=nursery) as terminal:
            await terminal.shows(f"Begin a new epoch of store {old.id}, now in epoch {old.epoch}?")
            terminal.type(answer)
            ended, out = await terminal.ended()
        assert ended == code
    new = await made(tmp_path)
    assert out == f"store {old.id}: epoch {old.epoch} -> {new.epoch}\n"
    assert new.epoch > old.epoch


@promise("store:retention-epoch")
async def test_a_script_confirms_by_a_flag_and_reads_both_epochs(tmp_path, nursery):
    old = await made(tmp_path)
    arguments = ("store", "new-epoch", "--yes", "--output", "json")

    done = await forked(nursery, *arguments, environment=bare(BACKSTAY_HOME=str(tmp_path)), folder=tmp_path)

    told = {"store": old.id, "old_epoch": old.epoch, "new_epoch": (await made(tmp_path)).epoch}
    assert (done.code, json.loads(done.out)) == (0, told)
    assert old.epoch < told["new_epoch"]


@promise("workers:adopt")
async def test_other_settings_are_adopted_only_when_that_is_confirmed(tmp_path, nursery):
    await made(tmp_path)
    environment = bare(BACKSTAY_HOME=str(tmp_path), BACKSTAY_APPROVER_KEY="a new key of approvers")
    before = fingerprints(tmp_path)

    unasked = await forked(nursery, "store", "adopt-settings", environment=environment, folder=tmp_path)
    unchanged = fingerprints(tmp_path)
    done = await forked(nursery, "store", "adopt-settings", "--yes", environment=environment, folder=tmp_path)

    assert (unasked.code, "--yes: there is no terminal" in unasked.err, unchanged) == (2, True, before)
    assert (done.code, done.out.endswith("the settings are adopted\n")) == (0, True)
    assert {what for what, _ in fingerprints(tmp_path)} >= {"BACKSTAY_APPROVER_KEY", "BACKSTAY_ENCRYPTION_KEYS"}


def fingerprints(home):
    with sqlite3.connect(home / "backstay.db") as connection:
        return connection.execute("SELECT what, fingerprint FROM worker_fingerprints ORDER BY what, place").fetchall()
