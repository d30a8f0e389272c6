"""Feeding: a new jail, given what the journal holds, comes to the same place, or the host says that it does not."""

import json
from dataclasses import replace
from inspect import cleandoc

import pytest
import pytest_asyncio

from backstay.errors import ImageMissing, ProgramDiverged, SandboxLost
from sandbox.limits import Limits
from tests.requirements import promise
from tests.sandbox.playing import TOOLS, Failed, opened, play, start_frame
from tests.sizes import spread

CHANCE = cleandoc(
    """
    import os, random, secrets, tempfile, uuid

    async def main():
        seen = []
        for n in range(4):
            seen.append([random.random(), random.sample(range(99), 3), str(uuid.uuid4()), str(uuid.uuid1())])
            seen.append([secrets.token_hex(4), os.urandom(3).hex()])
            seen.append([random.Random().random(), random.Random(n).random()])
            seen.append([random.SystemRandom().random(), tempfile.mktemp(), secrets.choice("abc")])
            seen.append(await mail.find(n=n, seen=seen[-1]))
        return seen
    """
)
TIME = cleandoc(
    """
    import datetime, logging, time

    async def main():
        seen = []
        for n in range(4):
            await asyncio.sleep(n / 7)
            time.sleep(0.3)
            seen += [time.time(), time.monotonic_ns(), time.perf_counter(), time.process_time()]
            seen.append(str(datetime.datetime.now()))
            seen += [asyncio.get_running_loop().time(), time.ctime(), logging.makeLogRecord({}).relativeCreated]
            await mail.find(seen=seen)
        return seen
    """
)
ORDER = cleandoc(
    """
    import gc

    class Thing:
        pass

    async def one(n):
        await asyncio.sleep(n % 3)
        words = {f"{n}-{k}" for k in range(20)}
        things = {Thing() for _ in range(20)}
        marks = [id(thing) for thing in things]
        found = await mail.find(words=list(words), hashes=[hash(w) for w in words], marks=marks)
        return [list(words), marks, [id(x) for x in found["words"][:3]]]

    async def main():
        junk = []
        for n in range(3):
            junk.append([bytearray(1000 * n) for _ in range(50)])
            a, b = await asyncio.gather(one(n), one(n + 1))
            junk.append([a, b, len(gc.get_objects()), id(object()), hash(object()), repr(Thing())])
        return junk[1::2]
    """
)
LARGE = cleandoc(
    """
    async def main():
        sizes = []
        for n in (1, 5_000, 70_000, 200_000, 10):
            found = await mail.find(text="x" * n)
            marks = [object() for _ in range(50)]
            sizes.append([len(found["text"]), id(found), [id(mark) for mark in marks]])
        return sizes
    """
)
ERRORS = cleandoc(
    """
    import traceback

    async def attempt(n):
        try:
            return await mail.send(n=n)
        except ToolError as error:
            return [error.error_type, str(error), traceback.format_exc()]

    async def main():
        print("before")
        first = await asyncio.gather(*(attempt(n) for n in range(4)))
        print(first)
        async with asyncio.timeout(150):
            second = [await attempt(n) for n in range(4)]
        return [first, second]
    """
)
ENDS_BADLY = "x = [await mail.find(n=n) for n in range(3)]\nraise ValueError(x)"


def answer(tool, arguments):
    if arguments.get("n", 0) % 2 and tool == "mail.send":
        raise Failed("Odd", f"{arguments['n']} is odd")
    return {**arguments, "tool": tool}


@pytest_asyncio.fixture(scope="module")
async def sandbox(tmp_path_factory):
    async with opened(tmp_path_factory.mktemp("jails")) as made:
        yield made


@promise("programs:pure")
@pytest.mark.parametrize(
    "source",
    spread([CHANCE, TIME, ORDER, LARGE, ERRORS, ENDS_BADLY], 2),
    ids=spread(["chance", "time", "order", "large", "errors", "crash"], 2),
)
async def test_a_program_that_is_replayed_in_every_round_says_byte_for_byte_what_it_says_live(sandbox, source):
    live = await play(sandbox, source, answer)
    replayed = await play(sandbox, source, answer, replaying=True)
    assert [each.came for each in replayed.rounds] == [each.came for each in live.rounds]
    assert [each.sent for each in replayed.rounds] == [each.sent for each in live.rounds]
    assert replayed.halted.output == live.halted.output
    assert (replayed.halted.kind, replayed.halted.result, replayed.halted.error) == (
        live.halted.kind,
        live.halted.result,
        live.halted.error,
    )
    assert (live.halted.replayed, replayed.halted.replayed) == (0, len(replayed.rounds) - 1)
    await sandbox.verify(sandbox.image_hash, live.start, live.rounds[:-1], tools=TOOLS)


@promise("programs:seeded")
async def test_another_seed_gives_other_chances_and_the_same_seed_the_same(sandbox):
    source = "import random, uuid\nreturn [random.random(), str(uuid.uuid4())]"
    first, same, other = [(await play(sandbox, source, seed=seed)).result for seed in ("a", "a", "b")]
    assert first == same
    assert not set(first) & set(other)


@promise("programs:journal")
async def test_the_first_round_holds_no_frame_and_every_later_one_exactly_what_was_sent(sandbox):
    played = await play(sandbox, "await mail.find(n=1)\nreturn 2")
    first, last = played.rounds
    assert first.sent == b""
    assert json.loads(first.came) == {"calls": [{"i": 0, "tool": "mail.find", "args": {"n": 1}}]}
    assert json.loads(last.sent)["results"] == [{"i": 0, "ok": {"n": 1}}]
    assert json.loads(last.came) == {"done": {"ok": 2}}
    assert all(each.wall_s > 0 and each.cpu_s >= 0 for each in played.rounds)


@promise("programs:journal")
async def test_calls_go_on_from_the_number_in_the_start_frame(sandbox):
    halted = await sandbox.advance(
        sandbox.image_hash,
        start_frame("await mail.find(n=1)", calls_from=7),
        key=None,
        frame=None,
        rounds=_none,
        tools=TOOLS,
        first_call=7,
    )
    assert [call.i for call in halted.calls] == [7]
    sandbox.discard(halted)


async def _none():
    return []


def _changed(came, old, new):
    assert old in came
    return came.replace(old, new)


@promise("programs:diverged")
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b'"n":1', b'"n":9', "call 1: the program calls mail.find with other arguments"),
        (b"mail.find", b"crm.find", "call 1: the program calls mail.find instead of crm.find"),
        (b"}}]}", b'}},{"i":2,"tool":"mail.find","args":{}}]}', "round 1: the program makes 1 calls instead of 2"),
        (b'"i":1', b'"i":5', "round 1: the program wrote to its control pipe: call 5 stands where call 1 must stand"),
    ],
)
async def test_a_journal_that_the_program_does_not_follow_is_told_by_call(sandbox, old, new, told):
    played = await play(sandbox, "for n in range(3):\n    await mail.find(n=n)")
    rounds = list(played.rounds[:-1])
    rounds[1] = replace(rounds[1], came=_changed(rounds[1].came, old, new))
    with pytest.raises(ProgramDiverged) as diverged:
        await sandbox.verify(sandbox.image_hash, played.start, rounds, tools=TOOLS)
    assert str(diverged.value) == told
    assert diverged.value.final


@promise("programs:diverged-order")
async def test_equal_arguments_in_another_order_are_no_divergence(sandbox):
    played = await play(sandbox, "await mail.find(a=1, b=2)\nawait mail.find()")
    rounds = list(played.rounds[:-1])
    rounds[0] = replace(rounds[0], came=_changed(rounds[0].came, b'"a":1,"b":2', b'"b" : 2, "a":1'))
    await sandbox.verify(sandbox.image_hash, played.start, rounds, tools=TOOLS)


@promise("programs:diverged")
async def test_a_program_that_ends_where_it_called_before_diverges_before_anything_is_done(sandbox):
    played = await play(sandbox, "for n in range(3):\n    await mail.find(n=n)")
    shorter = start_frame("for n in range(2):\n    await mail.find(n=n)")
    with pytest.raises(ProgramDiverged) as diverged:
        await sandbox.verify(sandbox.image_hash, shorter, played.rounds[:-1], tools=TOOLS)
    assert str(diverged.value) == "round 2: the program ends where it called mail.find"


@promise("programs:journal")
async def test_a_long_journal_with_large_frames_is_replayed_to_its_end(sandbox):
    source = cleandoc(
        """
        import random

        async def main():
            told = 0
            for n in range(60):
                found = await mail.find(n=n, text="x" * random.randrange(30_000))
                told += len(found["text"])
            return told
        """
    )
    played = await play(sandbox, source)
    assert len(played.rounds) == 61
    await sandbox.verify(sandbox.image_hash, played.start, played.rounds[:-1], tools=TOOLS)
    wrong = [*played.rounds[:40], replace(played.rounds[40], came=played.rounds[41].came), *played.rounds[41:-1]]
    with pytest.raises(ProgramDiverged, match="round 40: "):
        await sandbox.verify(sandbox.image_hash, played.start, wrong, tools=TOOLS)


@promise("programs:replay-faults")
async def test_a_limit_reached_while_replaying_is_a_lost_jail_and_not_the_programs_fault(sandbox, tmp_path):
    source = "await mail.find(n=1)\nx = bytearray(200 << 20)\nawait mail.find(n=2)"
    played = await play(sandbox, source, batches=2)
    async with opened(tmp_path, limits=Limits(memory_mb=512, output_bytes=10), ready=0) as other:
        printing = await play(sandbox, "print('x' * 99)\nawait mail.find(n=1)", batches=1)
        with pytest.raises(SandboxLost) as lost:
            await other.verify(other.image_hash, printing.start, printing.rounds, tools=TOOLS)
    assert "while round 0 was replayed: output:" in str(lost.value)
    sandbox.discard(played.halted)
    sandbox.discard(printing.halted)


@promise("programs:replay-image-gone")
async def test_an_image_that_is_gone_is_named(sandbox):
    with pytest.raises(ImageMissing, match="f" * 64):
        await sandbox.verify("f" * 64, start_frame(""), [], tools=TOOLS)


@promise("programs:replay-frames")
async def test_a_frame_for_a_program_that_has_not_run_and_none_for_one_that_has_are_refused(sandbox):
    with pytest.raises(ValueError, match="takes no frame"):
        await sandbox.advance(
            sandbox.image_hash,
            start_frame("return 1"),
            key=None,
            frame=b"{}",
            rounds=_none,
            tools=TOOLS,
            first_call=0,
        )
