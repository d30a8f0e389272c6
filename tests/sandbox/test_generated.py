"""Generated programs: live, replayed up to any round, and begun on another worker, they say the same byte for byte."""

import asyncio
import json
from dataclasses import replace
from random import Random

import pytest
import pytest_asyncio

from backstay.canonical import canonical
from backstay.errors import ProgramDiverged
from tests.requirements import promise
from tests.sandbox.playing import TOOLS, opened, start_frame
from tests.sandbox.programs import program
from tests.sandbox.tracing import NOW, Trace, compare, differences, run
from tests.sizes import sized, spread

PROGRAMS = 200
"""So many are looked at, and the first of them played, more at full size; `make soak` plays ten thousand."""
PLAYED = sized(60, 10)
A_PART = 10
CHANGED = spread(range(3100, 3112), 4)
AT_ONCE = 2


@pytest_asyncio.fixture(scope="module")
async def other(tmp_path_factory):
    """Another worker: its own jails, its own folder, its own copy of the image."""
    async with opened(tmp_path_factory.mktemp("jails")) as made:
        yield made


@promise("programs:generated")
@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PLAYED // A_PART))
async def test_a_program_replayed_up_to_any_round_on_another_worker_goes_on_as_it_did_live(sandbox, other, part):
    numbers = iter(range(part * A_PART, (part + 1) * A_PART))

    async def lane() -> None:
        for number in numbers:
            await compare(sandbox, other, number)

    await asyncio.gather(*(lane() for _ in range(AT_ONCE)))


@promise("programs:generated")
@pytest.mark.parametrize("number", [3001, 3002, 3003])
async def test_it_does_not_matter_after_which_round_a_program_is_replayed(sandbox, other, number):
    source = program(number)
    live = await run(sandbox, number, source)
    for since in range(len(live.rounds)):
        replayed = await run(other, number, source, live.rounds[:since])
        assert not differences(live, replayed), source


@promise("programs:generated")
def test_programs_are_of_every_kind_and_follow_from_their_numbers():
    many = [program(number) for number in range(PROGRAMS)]
    assert many == [program(number) for number in range(PROGRAMS)]
    assert len(set(many)) == PROGRAMS
    words = (
        "TaskGroup", "gather", "except*", "finally", "asyncio.sleep", "random.", "uuid4", "hash(", "id(", "time.time",
        "datetime", "nonlocal_", "yield", "print(", "ask(result", "gc.", "raise", "as_completed", "timeout", "match",
    )  # fmt: skip
    assert {word for word in words if not any(word in source for source in many)} == set()


@promise("programs:diverged-one-byte")
@pytest.mark.parametrize("number", CHANGED)
async def test_a_journal_with_one_byte_of_a_call_changed_is_never_followed(sandbox, number):
    live = await _long_enough(sandbox, number)
    place, rounds = _with_one_byte_changed(live, Random(number))
    with pytest.raises(ProgramDiverged):
        await sandbox.verify(
            sandbox.image_hash,
            start_frame(program(number), seed=f"seed {number}", now=NOW + number),
            rounds,
            tools=TOOLS,
        )
    assert live.rounds[place] != rounds[place]


@promise("programs:diverged-one-byte")
async def test_an_answer_with_one_byte_changed_leads_elsewhere(sandbox):
    source = (
        "seen = await mail.find(n=1)\nmore = await mail.find(n=2)\nreturn [seen, more, await mail.find(after=seen)]"
    )
    live = await run(sandbox, 1, source)
    changed = [replace(each, sent=_changed(each.sent)) if each.sent else each for each in live.rounds]
    with pytest.raises(ProgramDiverged, match="other arguments"):
        await sandbox.verify(
            sandbox.image_hash, start_frame(source, seed="seed 1", now=NOW + 1), changed[:3], tools=TOOLS
        )


LEAK = "import _random\nleaked = _random.Random().random()\n"


@promise("programs:diverged-unseeded")
async def test_a_program_that_reads_what_no_seed_rules_is_caught_where_it_reaches_a_call(sandbox, other):
    source = f"{LEAK}await mail.find(leaked=leaked)\nreturn 1"
    live = await run(sandbox, 1, source)
    with pytest.raises(ProgramDiverged, match=r"call 0: the program calls mail\.find with other arguments"):
        await run(other, 1, source, live.rounds[:1])
    assert differences(live, await run(other, 1, source))


@promise("programs:diverged-unseeded")
@pytest.mark.parametrize("use", ["print(leaked)", "return leaked", "raise ValueError(leaked)"])
async def test_a_program_that_reads_what_no_seed_rules_is_caught_where_it_reaches_no_call(sandbox, other, use):
    source = f"{LEAK}await mail.find(n=1)\n{use}"
    live = await run(sandbox, 1, source)
    assert differences(live, await run(other, 1, source, live.rounds[:1]))


@promise("programs:generated")
@pytest.mark.thorough
async def test_programs_do_depend_on_what_is_held_still(sandbox):
    """Otherwise their equality would say nothing."""
    changed = 0
    for number in range(3200, 3210):
        first, another = [await run(sandbox, number, program(number), seed=seed) for seed in ("a", "b")]
        changed += bool(differences(first, another))
    assert changed >= 5


async def _long_enough(sandbox, number: int) -> Trace:
    live = await run(sandbox, number, program(number))
    assert len(live.rounds) > 1, "this program makes no call; take another number"
    return live


def _with_one_byte_changed(live: Trace, dice: Random):
    """Return a place, and the journal with one byte of the calls there changed so that they are not the same."""
    rounds = live.rounds[:-1]
    place = dice.randrange(len(rounds))
    came = rounds[place].came
    while _meaning(came) == _meaning(rounds[place].came):
        at = dice.randrange(len(came))
        came = rounds[place].came[:at] + bytes([dice.randrange(32, 127)]) + rounds[place].came[at + 1 :]
    return place, [*rounds[:place], replace(rounds[place], came=came), *rounds[place + 1 :]]


def _meaning(came: bytes) -> str | None:
    try:
        return canonical(json.loads(came))
    except ValueError:
        return None


def _changed(sent: bytes) -> bytes:
    frame = json.loads(sent)
    for result in frame["results"]:
        result["ok"] = [result.get("ok"), 1]
    return json.dumps(frame).encode()
