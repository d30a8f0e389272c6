"""The ledger in a store, on SQLite and Postgres: who signs what, what an older copy is told apart by, what is kept."""

import asyncio
import json

import pytest
from sqlalchemy import update

from backstay.errors import SettingsInvalid, Transient
from backstay.settings import Settings
from backstay.task.ledger.anchors import read_anchors, roots_told
from backstay.task.ledger.chain import UNSIGNED, Row, digest_of_body, first_hash, row_hash, text_of
from backstay.task.ledger.evidence import evidence_of, verify_evidence
from backstay.task.ledger.keys import Signer, read_keys
from opening import open_store
from store.database.schema import ledger_heads, ledger_roots, ledger_rows
from store.ledger.noting import note
from tests.ledger.recorded import DAY, NOON, SIGNER, Clock, a_store, begin, chain_of, event, keys_of, step, whole
from tests.requirements import promise


async def change(store, table, values, *where):
    """Change rows as somebody does who can write the database."""
    await store.write(lambda connection: connection.execute(update(table).where(*where).values(**values)))


async def told(store, **asked):
    """All that verifying finds wrong."""
    verdict = await store.auditing.verify(asked.pop("keys", keys_of()), **asked)
    assert verdict.is_good == (not verdict.faults and not verdict.faulty)
    return [*verdict.faults, *(f"{run.run}: {fault.told}" for run in verdict.faulty for fault in run.faults)]


async def rewrite(store, run, body, count):
    """Write the rows of a run anew, as somebody does who can write the database and knows how rows are chained."""
    head = (await chain_of(store, run)).head
    end, rows, salt = first_hash(store.identity.id, run, head.salt), [], bytes.fromhex(head.salt)
    for n in range(1, count + 1):
        fields = (run, n, "2020-01-01T00:00:00.000+00:00", "event", "action.called")
        digest = digest_of_body(salt, text_of(body))
        end = row_hash(end, (*fields, digest))
        rows.append(Row(*fields, text_of(body), digest, end)._asdict())
    await store.write(lambda connection: connection.execute(ledger_rows.delete().where(ledger_rows.c.run == run)))
    await store.write(lambda connection: connection.execute(ledger_rows.insert(), rows))
    await change(store, ledger_heads, {"n": count, "hash": end}, ledger_heads.c.run == run)


@promise("ledger:writes")
async def test_what_a_run_does_is_in_its_chain_in_the_order_in_which_it_was_done(tmp_path, database_url):
    async with a_store(tmp_path, database_url) as store:
        head = await whole(store, "w/r1")
        chain = await chain_of(store, "w/r1")
        assert [(row.n, row.name) for row in chain.rows] == [
            (1, "run.opened"), (2, "decide"), (3, "effect.sent"), (4, "effect.applied"), (5, "action.called"),
            (6, "run.closed"),
        ]  # fmt: skip
        sent, decision = json.loads(chain.rows[2].body), json.loads(chain.rows[1].body)
        assert (sent["ruling"], sent["tool"]) == ("ask: mail.* asks", "mail.send")
        assert (decision["by"], decision["verified"], decision["request_id"]) == ("ana@example.com", True, "r1")
        assert head == chain.head.name == (await store.runs.get("w", "r1")).result["ledger_head"]
        assert await told(store) == []


@promise("ledger:one-transaction")
async def test_what_is_not_committed_is_not_in_the_chain(tmp_path, database_url):
    async with a_store(tmp_path, database_url) as store:
        await begin(store, "w/r1")

        def failing(connection):
            store.events.append.within(connection, "w/r1", [event(7)])
            store.ledger.head_of(connection, "w/r1")
            raise Transient("no more")

        before = (await chain_of(store, "w/r1")).head
        with pytest.raises(Transient):
            await store.write(failing)
        assert (await chain_of(store, "w/r1")).head == before
        await store.events.append("w/r1", [event(8)])
        after = await chain_of(store, "w/r1")
        assert ([row.n for row in after.rows], await told(store)) == ([*range(1, before.n + 2)], [])


@promise("ledger:one-transaction")
async def test_workers_that_write_to_one_run_at_once_leave_one_chain(tmp_path, database_url):
    async with a_store(tmp_path, database_url) as store, a_store(tmp_path, database_url) as other:
        await begin(store, "w/r1")
        writing = (written.events.append("w/r1", [event(n)]) for n in range(10, 30) for written in (store, other))
        await asyncio.gather(*writing, return_exceptions=True)
        chain = await chain_of(store, "w/r1")
        assert {json.loads(row.body).get("n") for row in chain.rows} >= {*range(10, 30)}
        assert await told(store) == []


@promise("ledger:laundered")
async def test_a_row_that_somebody_put_into_the_database_is_named_after_a_worker_has_signed_the_chain(
    tmp_path, database_url
):
    async with a_store(tmp_path, database_url) as store:
        await begin(store, "w/r1")
        chain = await chain_of(store, "w/r1")
        fields = ("w/r1", chain.head.n + 1, chain.head.at, "event", "action.called", "digest")
        forged = {"hash": row_hash(chain.head.hash, fields), "body": "{}"}
        row = dict(zip(("run", "n", "at", "kind", "name", "digest"), fields, strict=True)) | forged
        await store.write(lambda connection: connection.execute(ledger_rows.insert(), row))
        moved = {"n": row["n"], "hash": row["hash"]}
        # Without the signature, with the true one, and with a made-up key beside it.
        for more in ({}, {"signed_n": row["n"], "signed_hash": row["hash"]}, {"key": "me", "signature": "00"}):
            await change(store, ledger_heads, moved | more, ledger_heads.c.run == "w/r1")
            assert await told(store) != []
        async with a_store(tmp_path, database_url) as worker:
            await step(worker, "w/r1", 2)
        named = " ".join(await told(store))
        assert "earlier signature in it does not vouch" in named
        assert (await chain_of(store, "w/r1")).head.n > row["n"]


@promise("ledger:laundered")
@pytest.mark.parametrize("claimed", [0, -1, 5])
async def test_a_chain_that_was_written_anew_beneath_a_true_signature_is_named_after_a_worker_has_signed_it(
    tmp_path, database_url, claimed
):
    async with a_store(tmp_path, database_url) as store:
        await begin(store, "w/r1", steps=2)
        true = (await chain_of(store, "w/r1")).head
        n, signed = true.n + claimed, {"signed_n": true.signed_n, "signed_hash": true.signed_hash}
        await rewrite(store, "w/r1", {"by": "eve"}, n)
        await change(store, ledger_heads, signed, ledger_heads.c.run == "w/r1")
        async with a_store(tmp_path, database_url) as worker:
            await step(worker, "w/r1", 7)
            assert await worker.roots.make_due()
        assert (await chain_of(store, "w/r1")).head.signed_n > n
        assert "an earlier signature in it does not vouch for the rows before it" in " ".join(await told(store))


@promise("ledger:without-key")
async def test_without_a_key_rows_are_chained_and_verifying_says_that_nobody_signed(tmp_path, database_url):
    async with a_store(tmp_path, database_url, signer=None) as store:
        await whole(store, "w/r1")
        verdict = await store.auditing.verify(keys_of(first="2027-01-01"))
        assert "never signed" in verdict.faulty[0].faults[0].what
        no_keys = await store.auditing.verify(read_keys("", "none"))
        assert (no_keys.is_good, "never signed" in no_keys.noted[0].notes[0]) == (True, True)
        assert any("signatures were not checked" in line for line in no_keys.lines)
        await change(store, ledger_rows, {"body": "{}"}, ledger_rows.c.n == 2)
        assert "row 2" in " ".join(await told(store, keys=read_keys("", "none")))


@promise("ledger:beside")
async def test_what_a_command_adds_is_named_until_a_worker_signs_it_and_only_what_commands_write_is_no_fault(
    tmp_path, database_url
):
    async with a_store(tmp_path, database_url) as store, a_store(tmp_path, database_url, signer=None) as command:
        await whole(store, "w/r1")
        await command.write(lambda connection: note(connection, "w/r1", "decision", "reveal", {"by": "ana"}))
        verdict = await store.auditing.verify(keys_of())
        assert (verdict.is_good, verdict.noted[0].notes) == (True, ("row 7 was not signed",))
        assert await store.roots.make_due()
        signed = await chain_of(store, "w/r1")
        assert (signed.rows[-1].name, signed.head.signed_n) == (UNSIGNED, 9)
        assert (await store.auditing.verify(keys_of())).noted[0].notes == ("row 7 was not signed when row 9 came",)
        await command.write(lambda connection: note(connection, "w/r1", "event", "action.called", {}))
        assert "row 10 was not signed" in " ".join(await told(store))


@promise("ledger:beside")
@pytest.mark.parametrize(
    ("kind", "name", "body"),
    [
        ("decision", "decide", {"by": "ana", "verified": True, "verdict": "approve"}),
        ("proof", "proof.used", {"by": "ana", "update": "decide"}),
        ("run", "run.closed", {"outcome": "completed"}),
    ],
)
async def test_what_only_workers_write_is_a_fault_where_it_was_not_signed_also_after_a_root(tmp_path, kind, name, body):
    clock = Clock()
    async with a_store(tmp_path, clock=clock) as store, a_store(tmp_path, signer=None, clock=clock) as command:
        await begin(store, "w/r1")
        await store.roots.make_due()
        clock.now += DAY
        await command.write(lambda connection: note(connection, "w/r1", kind, name, body))
        assert "row 6 was not signed" in " ".join(await told(store))
        assert await store.roots.make_due()
        assert "row 6 was not signed when row 8 came" in " ".join(await told(store))


@promise("ledger:standing")
async def test_a_schedule_that_a_command_without_a_key_added_is_no_fault_and_no_run_passes_for_one(
    tmp_path, database_url
):
    added, decided = {"by": "ana", "update": "keep"}, {"by": "ana", "update": "decide"}
    clock = Clock()
    opened = a_store(tmp_path, database_url, clock=clock)
    async with opened as store, a_store(tmp_path, database_url, signer=None, clock=clock) as command:
        await whole(store, "w/r1")
        await store.roots.make_due()
        clock.now += DAY
        await command.write(lambda connection: note(connection, "schedule-s1", "proof", "proof.used", added))
        verdict = await store.auditing.verify(keys_of())
        assert (verdict.is_good, [run.notes for run in verdict.noted]) == (True, [("the head was never signed",)])
        clock.now += DAY
        assert await store.roots.make_due()
        verdict = await store.auditing.verify(keys_of())
        assert (verdict.is_good, verdict.noted[0].notes) == (True, ("row 1 was not signed when row 2 came",))
        await change(store, ledger_rows, {"body": "{}"}, ledger_rows.c.run == "schedule-s1")
        assert "row 1: what it says was changed" in " ".join(await told(store))
        await command.write(lambda connection: note(connection, "schedule-s2", "proof", "proof.used", decided))
        await command.write(lambda connection: note(connection, "w/r2", "proof", "proof.used", added))
        named = " ".join(await told(store))
        assert ("schedule-s2: the head was never signed" in named, "w/r2: the head was never signed" in named) == (
            True,
            True,
        )


@promise("ledger:beside")
async def test_a_store_that_was_used_before_there_was_a_key_verifies_from_the_day_of_the_first_root(
    tmp_path, database_url
):
    clock = Clock()
    async with a_store(tmp_path, database_url, signer=None, clock=clock) as store:
        await whole(store, "w/r1")
    async with a_store(tmp_path, database_url, clock=clock) as store:
        assert "never signed" in " ".join(await told(store, keys=keys_of(first="2026-03-04")))
        await store.roots.make_due()
        verdict = await store.auditing.verify(keys_of(first="2026-03-04"))
        assert (verdict.is_good, verdict.noted[0].notes) == (True, ("rows 1 to 6 were not signed when row 7 came",))
        chain, first = await chain_of(store, "w/r1"), (await store.roots.all())[0]
        chained = [chain]
        for root, good in ((first, True), (None, False), (first._replace(at="2026-03-05", day="2026-03-05"), False)):
            evidence = json.dumps(evidence_of(store.identity.id, chained, keys_of(), "", root))
            assert verify_evidence(evidence, "it").is_good is good
        # Later, rows that claim to be older than the key are no better than others that nobody signed.
        clock.now += DAY
        async with a_store(tmp_path, database_url, signer=None, clock=clock) as command:
            await whole(command, "w/r2")
            await rewrite(command, "w/r2", {"by": "eve"}, 3)
        assert await store.roots.make_due()
        assert await told(store) == ["w/r2: rows 1 to 3 were not signed when row 4 came"]


@promise("ledger:evidence")
async def test_evidence_says_whose_keys_it_was_verified_with_and_rows_that_must_still_be_there_are_missed(tmp_path):
    async with a_store(tmp_path) as store:
        await whole(store, "w/r1")
        chain = await chain_of(store, "w/r1")
        evidence = evidence_of(store.identity.id, [chain], keys_of(), "", None)
    own, given = (verify_evidence(json.dumps(evidence), "it", keys) for keys in (None, keys_of()))
    assert (own.is_good, "with the keys in the file itself" in own.lines[-1]) == (True, True)
    assert (given.is_good, "in the file itself" in given.lines[-1]) == (True, False)
    assert "which other runs there are, a file of evidence does not tell" in given.lines[-1]
    (run,) = evidence["runs"]
    run |= {"rows": [], "pruned": True, "head": run["head"] | {"salt": ""}}
    for kept_from, good in (("2026-03-01", False), ("2026-06-01", True)):
        assert verify_evidence(json.dumps(evidence), "it", keys_of(), kept_from=kept_from).is_good is good


@promise("ledger:rotation")
async def test_a_new_key_goes_on_with_a_chain_and_both_are_verified_by_their_days(tmp_path, database_url):
    new = Signer.make()[1]
    clock = Clock()
    async with a_store(tmp_path, database_url, clock=clock) as store:
        await begin(store, "w/r1")
    clock.now += DAY
    async with a_store(tmp_path, database_url, signer=new, clock=clock) as store:
        await step(store, "w/r1", 2)
        lines = f"{SIGNER.public} 2026-01-01 2026-03-04  # the first\n\n{new.public} 2026-03-05\n"
        assert await told(store, keys=read_keys(lines, "the list")) == []
        assert "not in the list" in " ".join(await told(store, keys=keys_of(new)))
        assert "not in the list" in " ".join(await told(store, keys=keys_of(SIGNER)))
        ended = read_keys(f"{SIGNER.public} 2026-01-01 2026-03-03\n{new.public} 2026-03-05", "the list")
        assert "its key signs from 2026-01-01 to 2026-03-03" in " ".join(await told(store, keys=ended))


@promise("ledger:roots")
async def test_each_day_has_one_root_that_names_the_heads_that_moved(tmp_path, database_url):
    clock = Clock()
    async with a_store(tmp_path, database_url, clock=clock) as store:
        await whole(store, "w/r1")
        assert [await store.roots.make_due() for _ in range(2)] == [True, False]
        clock.now += DAY
        await whole(store, "w/r2")
        assert await asyncio.gather(*(store.roots.make_due() for _ in range(2))) in ([True, False], [False, True])
        made = await store.roots.all()
        assert [(root.day, [run for run, _, _ in json.loads(root.heads)]) for root in made] == [
            ("2026-03-04", ["w/r1"]), ("2026-03-05", ["w/r2"]),
        ]  # fmt: skip
        assert await told(store) == []
        for values in ({"heads": "[]"}, {"day": "2026-03-03"}, {"signature": "00"}, {"hash": "0"}):
            before = {name: getattr(made[0], name) for name in values}
            await change(store, ledger_roots, values, ledger_roots.c.n == 1)
            assert "root 1 of" in " ".join(await told(store))
            await change(store, ledger_roots, before, ledger_roots.c.n == 1)
        await store.write(
            lambda connection: connection.execute(ledger_heads.delete().where(ledger_heads.c.run == "w/r1"))
        )
        await store.write(
            lambda connection: connection.execute(ledger_rows.delete().where(ledger_rows.c.run == "w/r1"))
        )
        found = await told(store)
        assert any("w/r1: its chain is missing" in fault for fault in found), found
        assert any("w/r1: its head and all of its rows are missing" in fault for fault in found), found


@promise("ledger:roots")
async def test_a_chain_that_claims_an_earlier_day_than_the_root_that_should_name_it_is_found(tmp_path, database_url):
    clock, new = Clock(), Signer.make()[1]
    async with a_store(tmp_path, database_url, clock=clock) as store:
        await whole(store, "w/r1")
        await store.roots.make_due()
    keys = read_keys(f"{SIGNER.public} 2026-01-01 2026-03-04\n{new.public} 2026-03-05", "the list")
    clock.now += 5 * DAY
    async with a_store(tmp_path, database_url, signer=new, clock=clock) as store:
        await whole(store, "w/r2")
        await store.roots.make_due()
        assert await told(store, keys=keys) == []
        # Who has the old key, and sets the clock back, writes a run of a day on which that key was valid.
        async with a_store(tmp_path, database_url) as forged:
            await whole(forged, "w/r3")
        found = await told(store, keys=keys)
        assert found == [
            "w/r3: it was signed at 2026-03-04T12:00:00.000+00:00, and no daily root that came later names it"
        ]
        await store.write(lambda connection: connection.execute(ledger_roots.delete()))
        await change(store, ledger_heads, {"rooted": 0})
        await store.roots.make_due()
        assert "the daily roots from before 2026-03-08" in " ".join(await told(store, keys=keys))


@promise("ledger:roots")
async def test_neither_a_clock_that_was_ahead_nor_a_chain_that_cannot_be_signed_ends_the_daily_roots(tmp_path):
    clock = Clock(NOON + 365 * DAY)
    async with a_store(tmp_path, clock=clock) as store, a_store(tmp_path, signer=None, clock=clock) as command:
        await whole(store, "w/r1")
        assert await store.roots.make_due()
        clock.now = NOON
        assert [await store.roots.make_due() for _ in range(2)] == [True, False]
        clock.now += DAY
        await whole(command, "w/r2")
        await change(store, ledger_heads, {"salt": "no key"}, ledger_heads.c.run == "w/r2")
        assert await store.roots.make_due()
        assert "w/r2: the head's key of digests was changed" in " ".join(await told(store))


@promise("ledger:anchor")
async def test_an_older_copy_verifies_by_itself_and_is_told_apart_with_what_was_kept_elsewhere(tmp_path, database_url):
    clock = Clock()
    async with a_store(tmp_path, database_url, clock=clock) as store:
        await begin(store, "w/r1")
        await store.roots.make_due()
        older = await chain_of(store, "w/r1")
        clock.now += DAY
        await step(store, "w/r1", 2)
        head = await store.runs.closed("w/r1", {"outcome": "completed"})
        await store.roots.make_due()
        kept = [
            json.dumps(roots_told(store.identity.id, await store.roots.all())),
            json.dumps({"workflow_id": "w", "ledger_head": head}),
            json.dumps({"BackstayLedgerHead": head}),
        ]
        anchors = [read_anchors(text, "kept.json") for text in kept]
        for anchor in anchors:
            assert await told(store, anchors=anchor, where="kept.json") == []
            assert (await store.auditing.verify(keys_of(), anchors=anchor)).lines[-1].endswith("elsewhere is in it")
        # Put back what was there a day before, signature and all.
        await change(store, ledger_heads, older.head._asdict() | {"rooted": older.head.n}, ledger_heads.c.run == "w/r1")
        await store.write(
            lambda connection: connection.execute(ledger_rows.delete().where(ledger_rows.c.n > older.head.n))
        )
        await store.write(lambda connection: connection.execute(ledger_roots.delete().where(ledger_roots.c.n == 2)))
        verdict = await store.auditing.verify(keys_of())
        assert (verdict.is_good, verdict.signed_until[:10]) == (True, "2026-03-04")
        assert "whether anything came after that" in verdict.lines[-1]
        for anchor in anchors:
            found = await told(store, anchors=anchor, where="kept.json")
            assert ["older copy" in fault for fault in found] == [True], found
        other = read_anchors(kept[0].replace(store.identity.id, "another"), "kept.json")
        assert "is of store another" in " ".join(await told(store, anchors=other, where="kept.json"))


@promise("ledger:pruned")
async def test_a_pruned_run_keeps_its_rows_for_their_days_and_then_verifies_as_pruned_by_its_head(
    tmp_path, database_url
):
    clock = Clock()
    async with a_store(tmp_path, database_url, clock=clock) as store:
        for run in ("w/r1", "w/r2"):
            await whole(store, run)
        clock.now += 60 * DAY
        await store.pruning.prune((await store.pruning.idle(NOON + DAY))[0], NOON + DAY)
        pruned = await chain_of(store, "w/r1")
        assert (pruned.rows[-1].name, pruned.pruned, await told(store)) == ("run.pruned", True, [])
        assert [await store.chains.forget("2026-03-05"), len((await chain_of(store, "w/r1")).rows)] == [0, 7]
        clock.now += 60 * DAY
        assert [await store.chains.forget("2026-06-01", dry_run=dry) for dry in (True, False)] == [7, 7]
        left = await chain_of(store, "w/r1")
        verdict = await store.auditing.verify(keys_of(), kept_from="2026-06-01")
        assert (left.rows, left.head.salt, left.head.n) == ((), "", 7)
        assert (verdict.is_good, verdict.pruned, verdict.runs) == (True, 1, 2)
        # Rows that are gone before their days are missing, whatever the store says of their run.
        assert "they are kept since 2026-02-01" in " ".join(await told(store, kept_from="2026-02-01"))
        # What comes late is not kept either.
        await store.events.append("w/r1", [event(9)])
        assert (await chain_of(store, "w/r1")) == left
        await change(store, ledger_heads, {"salt": ""}, ledger_heads.c.run == "w/r2")
        await store.write(
            lambda connection: connection.execute(ledger_rows.delete().where(ledger_rows.c.run == "w/r2"))
        )
        assert "the run was not pruned" in " ".join(await told(store))


@promise("ledger:only-workers")
async def test_only_a_worker_signs_though_others_may_have_the_key_in_their_environment(tmp_path):
    key, _ = Signer.make()
    settings = Settings.load(None, home=tmp_path, ledger_key=key)
    async with open_store(settings) as command, open_store(settings, signs=True) as worker:
        await whole(command, "w/r1")
        await whole(worker, "w/r2")
        assert [(await chain_of(worker, run)).head.signature == "" for run in ("w/r1", "w/r2")] == [True, False]
    with pytest.raises(SettingsInvalid, match="BACKSTAY_LEDGER_KEY: not a key; make one with: backstay ledger key"):
        open_store(Settings.load(None, home=tmp_path, ledger_key="a key of another kind"), signs=True)
