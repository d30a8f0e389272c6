"""What is found of changes to a recorded chain: every byte, every cut, every swap."""

import random

import pytest

from backstay.task.ledger.verifying import ChainAnchor, verify_run
from tests.ledger.recorded import SIGNER, a_store, chain_of, keys_of, whole
from tests.requirements import promise


def verified(chain, store, head=None, rows=None, *, keys=None):
    expected = ChainAnchor(store=store, pruned=chain.pruned)
    return verify_run(head or chain.head, chain.rows if rows is None else rows, keys or keys_of(), expected)


def other_texts(text):
    """Every text that differs from one in one character, and what reads the same though it is written otherwise."""
    for place, character in enumerate(text):
        yield text[:place] + chr(ord(character) ^ 1) + text[place + 1 :]
        if character.swapcase() != character:
            yield text[:place] + character.swapcase() + text[place + 1 :]
    yield from (f"{text} ", f" {text}", f"{text}0", f"{text}00", text[:-1])


def others(value):
    """Every other value of a stored field that differs in one byte."""
    if isinstance(value, int):
        return [value ^ (1 << bit) for bit in range(31)] + [-value, value + 1, value - 1]
    return [text for text in other_texts(value) if text != value]


def changed(fields):
    """A row or a head with one byte of one field changed, for each field and byte."""
    for name in fields._fields:
        for value in others(getattr(fields, name)):
            yield name, fields._replace(**{name: value})


@promise("ledger:every-byte")
async def test_every_other_byte_in_every_field_of_a_recorded_run_is_found(tmp_path):
    async with a_store(tmp_path) as store:
        await whole(store, "w/r1")
        chain, name = await chain_of(store, "w/r1"), store.identity.id
    assert (verified(chain, name).faults, len(chain.rows)) == ((), 6)
    missed, tried = [], 0
    for place, row in enumerate(chain.rows):
        for field, other in changed(row):
            rows = [*chain.rows[:place], other, *chain.rows[place + 1 :]]
            # What a database returns is in its order.
            rows = sorted((row for row in rows if row.run == "w/r1"), key=lambda row: row.n)
            faults, tried = verified(chain, name, rows=rows).faults, tried + 1
            if not any(fault.n and fault.n <= row.n <= (fault.last or fault.n) for fault in faults):
                missed.append((row.n, field, faults))
    for field, head in changed(chain.head):
        tried += 1
        if not verified(chain, name, head=head).faults and field != "run":
            missed.append(("head", field))
    assert (missed, tried > 3000) == ([], True)


@promise("ledger:cuts")
async def test_every_cut_and_every_swap_is_found_and_named(tmp_path):
    async with a_store(tmp_path) as store:
        await whole(store, "w/r1", steps=2)
        chain, name = await chain_of(store, "w/r1"), store.identity.id
    count = len(chain.rows)
    for first in range(count):
        for last in range(first + 1, count + 1):
            left = [*chain.rows[:first], *chain.rows[last:]]
            faults = verified(chain, name, rows=left).faults
            gone = [(fault.n, fault.last) for fault in faults if fault.what == "missing"]
            assert gone == [(first + 1, last)], faults
    for first in range(count):
        for other in range(first + 1, count):
            rows = list(chain.rows)
            rows[first], rows[other] = rows[other]._replace(n=first + 1), rows[first]._replace(n=other + 1)
            found = {fault.n for fault in verified(chain, name, rows=rows).faults}
            assert {first + 1, other + 1} <= found
            # Stored in another order, with their own numbers.
            rows[first], rows[other] = chain.rows[other], chain.rows[first]
            assert verified(chain, name, rows=rows).faults


@promise("ledger:every-byte")
@pytest.mark.parametrize("tries", [300, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_random_changes_cuts_and_swaps_of_a_long_run_are_found(tmp_path, tries):
    chance = random.Random(tries)
    async with a_store(tmp_path) as store:
        await whole(store, "w/r1", steps=50)
        chain, name = await chain_of(store, "w/r1"), store.identity.id
    assert (verified(chain, name).faults, len(chain.rows)) == ((), 202)
    missed = []
    for number in range(tries):
        rows = list(chain.rows)
        first, other = sorted(chance.sample(range(len(rows)), 2))
        match number % 3:
            case 0:
                field = chance.choice(rows[first]._fields[1:])
                value = chance.choice(others(getattr(rows[first], field)))
                rows[first] = rows[first]._replace(**{field: value})
            case 1:
                del rows[first:other]
            case _:
                rows[first], rows[other] = rows[other]._replace(n=first + 1), rows[first]._replace(n=other + 1)
        rows.sort(key=lambda row: row.n)
        if not verified(chain, name, rows=rows).faults:
            missed.append((number, first, other))
    assert missed == []


@promise("ledger:keyed")
async def test_without_the_key_of_a_run_its_rows_tell_nothing_of_a_short_number_and_equal_ones_look_different(tmp_path):
    async with a_store(tmp_path) as store:
        for run in ("w/r1", "w/r2"):
            await whole(store, run)
        first, other = [await chain_of(store, run) for run in ("w/r1", "w/r2")]
    pins = [next(row for row in chain.rows if "4711" in row.body) for chain in (first, other)]
    assert pins[0].body.replace("r1", "") == pins[1].body.replace("r2", "")
    assert pins[0].digest != pins[1].digest
    assert first.head.salt != other.head.salt


@promise("ledger:no-key")
async def test_who_changes_a_row_and_writes_the_chain_anew_has_no_valid_head(tmp_path):
    async with a_store(tmp_path / "true") as store:
        await whole(store, "w/r1")
        name = store.identity.id
        true = await chain_of(store, "w/r1")
    for signer in (None, type(SIGNER).make()[1]):
        async with a_store(tmp_path / f"false{signer is None}", signer=signer) as forged:
            # Whoever can write the database can make a chain that fits, and name the true key in its head.
            forged.identity = forged.identity.model_copy(update={"id": name})
            await whole(forged, "w/r1", steps=2)
            false = await chain_of(forged, "w/r1")
        for head in (
            false.head,
            false.head._replace(key=true.head.key, signed_n=false.head.n, signed_hash=false.head.hash),
            false.head._replace(key=true.head.key, signature=true.head.signature, at=true.head.at),
        ):
            faults = [fault.told for fault in verified(false, name, head=head).faults]
            assert any("head" in told for told in faults), faults
