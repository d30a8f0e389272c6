"""Forged frames by the thousand: the host reads calls of the declared set, an end, or refuses in one line."""

import asyncio
import gc
import json
import os
import tracemalloc
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from backstay.errors import SandboxLost
from sandbox.programs.crash import ProgramCrashed
from sandbox.programs.frames import READY
from tests.ports import open_links
from tests.requirements import promise
from tests.sandbox.forging import KINDS, LIMITS, Forger, hold_plain, judged
from tests.sandbox.peers import ENDINGS, LONGEST_S, SAYING, converse, framed, led, meeting, started, wire
from tests.sizes import sized

FRAMES = sized(19_200, 1_200)
CONVERSATIONS = sized(800, 120)
PROCESSES = 200
AT_ONCE = 8
CALL = b'{"calls":[{"i":0,"tool":"mail.send","args":{}}]}'
DONE = b'{"done":{"ok":1}}'
OPENED_BESIDE = 4
"""What else in this process may open files meanwhile; whatever leaks in one kind of exchange does so more often."""
STUBBORN = "trap '' TERM; "


@promise("sandbox:frames-forged")
@pytest.mark.parametrize("part", range(8))
def test_every_forged_frame_is_calls_of_the_declared_set_an_end_or_a_refusal(part):
    forger, found = Forger(f"frames {part}"), Counter()
    for _ in range(FRAMES // 8):
        kind, frame = forger.frame()
        found[kind, judged(frame, forger.first_call)] += 1
    assert {kind for kind, _ in found} == {kind.__name__ for kind in KINDS}
    assert {verdict for _, verdict in found} >= {"calls", "an end", "ProtocolBroken", "ToolNotFound", "CallLimit"}
    assert {verdict for kind, verdict in found if kind == "honest"} == {"calls", "an end"}


@promise("sandbox:forged-noticed")
@pytest.mark.parametrize(
    "value", [float("inf"), float("nan"), "\ud800", {"\udfff": 1}, json.loads("[" * 101 + "]" * 101)]
)
def test_what_a_reader_must_not_let_through_would_be_noticed(value):
    with pytest.raises((AssertionError, ValueError)):
        hold_plain([value])


@promise("sandbox:forged-peers")
async def test_whatever_a_peer_says_and_however_it_says_it_each_exchange_ends_with_a_frame_or_a_cause():
    files, found = _files(), Counter()

    async def talk(lane: int) -> None:
        forger = Forger(f"conversations {lane}")
        for _ in range(CONVERSATIONS // AT_ONCE):
            found.update(await converse(forger))

    await asyncio.gather(*map(talk, range(AT_ONCE)))
    assert set(found) >= {"calls", "an end", "ProtocolBroken", "FrameLimit", "OutputLimit", "WallLimit", "JailLost"}
    await _closed_again(files)


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    place = tmp_path / "ready"
    place.write_bytes(framed(READY))
    return place


@promise("sandbox:forged-processes")
@pytest.mark.thorough
async def test_whatever_a_process_writes_before_it_dies_or_stays_the_host_ends_it_and_goes_on(ready, tmp_path):
    files, found = _files(), Counter()

    async def lead(lane: int) -> None:
        forger, said = Forger(f"processes {lane}"), tmp_path / f"said-{lane}"
        for number in range(PROCESSES // AT_ONCE):
            said.write_bytes(wire(forger))
            script = SAYING + ENDINGS[(lane + number) % len(ENDINGS)]
            found[await led(("/bin/sh", "-c", script, "sh", str(ready), str(said)), forger)] += 1

    await asyncio.gather(*map(lead, range(AT_ONCE)))
    assert found.total() == PROCESSES
    assert set(found) >= {"calls", "an end", "ProtocolBroken", "FrameLimit", "OutputLimit"}
    await _closed_again(files)


@promise("sandbox:forged-ready")
async def test_a_process_that_begins_with_anything_but_the_ready_frame_is_lost_in_one_line(ready, tmp_path):
    files, forger = _files(), Forger("beginnings")
    for number in range(16):
        ready.write_bytes(wire(forger) if number % 2 else framed(READY)[:number])
        with pytest.raises(SandboxLost) as lost:
            await started(("/bin/sh", "-c", 'cat "$1"', "sh", str(ready)))
        assert "a jail did not start: " in str(lost.value)
    await _closed_again(files)


@promise("sandbox:forged-processes")
async def test_a_process_that_ignores_the_polite_signal_is_ended_all_the_same(ready, tmp_path):
    said = tmp_path / "said"
    said.write_bytes(framed(CALL) * 2)
    command = ("/bin/sh", "-c", f"{STUBBORN}{SAYING}while :; do sleep 600; done", "sh", str(ready), str(said))
    assert await led(command, Forger("stubborn")) == "ProtocolBroken"


@promise("sandbox:frames-bounded")
async def test_a_promised_length_costs_no_memory_before_the_bytes_are_there():
    costs = {}
    for size in (LIMITS.frame_bytes, LIMITS.frame_bytes + 1, 2**32 - 1):
        async with meeting() as peer:
            asked = asyncio.ensure_future(peer.jail.exchange(b"{}", wall_s=0.05))
            await asyncio.sleep(0)
            tracemalloc.start()
            await peer.say(framed(b"{", size))
            with pytest.raises(ProgramCrashed) as ended:
                await asyncio.wait_for(asked, LONGEST_S)
            costs[ended.value.kind] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert set(costs) == {"WallLimit", "FrameLimit"}
    # One read takes at most 64 KiB; the frame that was promised would take 98.
    assert max(costs.values()) < 90_000


@promise("sandbox:frames-bounded")
async def test_bytes_beyond_the_promised_length_are_never_gathered():
    async with meeting() as peer:
        asked = asyncio.ensure_future(peer.jail.exchange(b"{}", wall_s=LONGEST_S))
        await asyncio.sleep(0)
        flood = [framed(CALL, LIMITS.frame_bytes), *[b" " * 50_000] * 400]
        tracemalloc.start()
        await peer.say(*flood)
        with pytest.raises(ProgramCrashed):
            await asyncio.wait_for(asked, LONGEST_S)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < 4 * LIMITS.frame_bytes


@promise("sandbox:frames-bounded")
@pytest.mark.parametrize("more", [CALL, DONE, b"", b"noise"])
async def test_nothing_is_heard_after_an_end(more):
    async with meeting() as peer:
        assert await _told(peer, framed(DONE)) == DONE
        await peer.say(framed(more))
        await _until(lambda: not peer.jail.alive)
        with pytest.raises(ProgramCrashed) as refused:
            await peer.jail.exchange(b"{}", wall_s=LONGEST_S)
    assert (refused.value.kind, "out of turn" in refused.value.message) == ("ProtocolBroken", True)


@promise("sandbox:frames-bounded")
async def test_a_frame_is_the_same_in_however_many_pieces_it_comes():
    async with meeting() as peer:
        for _ in range(3):
            assert await _told(peer, *(bytes([byte]) for byte in framed(CALL))) == CALL
        assert await _told(peer, framed(DONE)) == DONE


async def _told(peer, *pieces: bytes) -> bytes:
    asked = asyncio.ensure_future(peer.jail.exchange(b"{}", wall_s=LONGEST_S))
    await asyncio.sleep(0)
    await peer.say(*pieces)
    return await asyncio.wait_for(asked, LONGEST_S)


def _files() -> Counter[str]:
    """Return how many files of each kind this process has open; another one may be in the place of one before.

    Connections by TCP are left out, since those to Temporal come and go by themselves. The kernel lists them only while
    they live, but sockets of Unix until they are closed.
    """
    gc.collect()
    kept = {f"socket:[{line.split()[6]}]" for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
    names = [name for name in open_links(os.getpid()) if name in kept or not name.startswith("socket:")]
    return Counter(name if name.startswith("anon_inode:") else name.partition(":[")[0] for name in names)


async def _closed_again(before: Counter[str]) -> None:
    """Wait until no more is open than before, but for what else this process may have opened."""
    with suppress(TimeoutError):
        await _until(lambda: (_files() - before).total() <= OPENED_BESIDE)
    more = _files() - before
    assert more.total() <= OPENED_BESIDE, more


async def _until(condition) -> None:
    async with asyncio.timeout(LONGEST_S):
        while not condition():
            await asyncio.sleep(0.001)
