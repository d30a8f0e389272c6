"""What stands at the other end of a jail's pipes in place of an interpreter, and says what a forger tells it."""

import asyncio
import os
import random
import shutil
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sandbox.isolation.spawn import ChildProcess
from sandbox.programs.crash import ProgramCrashed
from sandbox.programs.jail import Jail
from tests.sandbox.forging import LIMITS, Forger, judged

SLEEP = shutil.which("sleep") or "/bin/sleep"
ENDS = {
    "ProtocolBroken",
    "FrameLimit",
    "OutputLimit",
    "WallLimit",
    "JailLost",
    "InterpreterExit",
    "Killed",
    "InterpreterCrash",
}
LONGEST_S = 30.0
NOBODY_WAITS_S = 0.02
# What a process does once it has said what it was told to.
ENDINGS = (
    "exec sleep 600",
    "exit 3",
    "kill -9 $$",
    "kill -SEGV $$",
    "exec >&-; exec sleep 600",
    'while cat "$2" "$2" >&2; do :; done',
)
SAYING = 'cat "$1"; head -c 4 >/dev/null; cat "$2"; '


@dataclass
class Peer:
    """Hold a process that only sleeps, and the jail's ends of its pipes."""

    jail: Jail
    pid: int
    reads: int
    writes: int
    prints: int

    async def say(self, *pieces: bytes, to: int | None = None) -> None:
        """Write one piece after the other, for as long as somebody reads."""
        for piece in pieces:
            left = piece
            while left:
                try:
                    left = left[os.write(self.writes if to is None else to, left) :]
                except BlockingIOError:
                    if not self.jail.alive:
                        return
                except OSError:
                    return
                await asyncio.sleep(0)

    def kill(self) -> None:
        if not self.jail.gone.done():
            os.kill(self.pid, signal.SIGKILL)

    def close(self, *names: str) -> None:
        for name in names:
            if (fd := getattr(self, name)) >= 0:
                os.close(fd)
                setattr(self, name, -1)


@asynccontextmanager
async def meeting() -> AsyncGenerator[Peer]:
    """Open a jail whose other side is ours; at the end it is gone, with all of its files."""
    pipes = (in_read, in_write), (out_read, out_write), (err_read, err_write) = [os.pipe() for _ in range(3)]
    for fd in (fd for ends in pipes for fd in ends):
        os.set_blocking(fd, False)
    pid = _sleeping()
    jail = Jail(ChildProcess(pid, os.pidfd_open(pid), in_write, out_read, err_read), LIMITS)
    peer = Peer(jail, pid, in_read, out_write, err_write)
    try:
        yield peer
    finally:
        async with asyncio.timeout(LONGEST_S):
            await jail.end()
        peer.close("reads", "writes", "prints")
        assert jail.gone.done()
        assert not jail.alive


def _sleeping() -> int:
    return os.posix_spawn(SLEEP, [SLEEP, "600"], {}, setsid=True)


def framed(frame: bytes, size: int | None = None) -> bytes:
    return (len(frame) if size is None else size).to_bytes(4, "big") + frame


async def whole(peer: Peer, frame: bytes, dice: random.Random) -> None:
    await peer.say(framed(frame))


async def dribbled(peer: Peer, frame: bytes, dice: random.Random) -> None:
    await peer.say(*(bytes([byte]) for byte in framed(frame)[:300]), framed(frame)[300:])


async def in_pieces(peer: Peer, frame: bytes, dice: random.Random) -> None:
    data = framed(frame)
    cuts = sorted(dice.randrange(len(data) + 1) for _ in range(6))
    await peer.say(*(data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)))


async def with_noise(peer: Peer, frame: bytes, dice: random.Random) -> None:
    await peer.say(dice.randbytes(3_000), to=peer.prints)
    await peer.say(framed(frame))


async def lying(peer: Peer, frame: bytes, dice: random.Random) -> None:
    most = LIMITS.frame_bytes
    sizes = (0, 1, len(frame) - 1, len(frame) + 1, most, most + 1, 2**31, 2**32 - 1)
    await peer.say(framed(frame, max(0, dice.choice(sizes))))
    peer.close("writes")


async def doubled(peer: Peer, frame: bytes, dice: random.Random) -> None:
    await peer.say(framed(frame) + framed(frame)[: dice.choice((1, 3, 4, 9, None))])


async def bare(peer: Peer, frame: bytes, dice: random.Random) -> None:
    await peer.say(frame)
    peer.close("writes")


async def broken_off(peer: Peer, frame: bytes, dice: random.Random) -> None:
    data = framed(frame)
    await peer.say(data[: dice.randrange(len(data))])
    dice.choice((peer.kill, lambda: peer.close("writes"), lambda: peer.close("reads", "writes")))()


async def flooding(peer: Peer, frame: bytes, dice: random.Random) -> None:
    await peer.say(*[framed(frame, LIMITS.frame_bytes)] * 40, framed(frame) * 40)


async def printing(peer: Peer, frame: bytes, dice: random.Random) -> None:
    await peer.say(*[dice.randbytes(20_000)] * 8, to=peer.prints)


async def dying(peer: Peer, frame: bytes, dice: random.Random) -> None:
    peer.kill()
    await peer.say(framed(frame))


HONEST: tuple[Callable, ...] = (whole, dribbled, in_pieces, with_noise)
MEAN: tuple[Callable, ...] = (lying, doubled, bare, broken_off, flooding, printing, dying)


async def converse(forger: Forger) -> list[str]:
    """Let a jail exchange a few forged frames with a peer, and return what each came to.

    Nobody waits long for a peer that has said less than it promised, and nothing comes after the first refusal.
    """
    dice, came = forger.dice, []
    async with meeting() as peer:
        if dice.random() < 0.05:
            await peer.say(forger.frame()[1])
        for _ in range(dice.randint(1, 3)):
            kind, frame = forger.frame()
            way = dice.choice(HONEST if dice.random() < 0.6 else MEAN)
            sent = b"x" * (300_000 if dice.random() < 0.05 else 9)
            heard = await _exchanged(peer, sent, way, frame, dice)
            if isinstance(heard, ProgramCrashed):
                return [*came, _cause(heard)]
            assert len(heard) <= LIMITS.frame_bytes
            if way in HONEST:
                assert heard == frame, f"{kind}, {way.__name__}"
            came.append(judged(heard, forger.first_call))
            if peer.writes < 0:
                return came
    return came


async def _exchanged(peer: Peer, sent: bytes, way: Callable, frame: bytes, dice: random.Random):
    """Return the frame that came, or what ended the jail."""
    patient = way in HONEST and len(sent) < 60_000
    async with asyncio.timeout(LONGEST_S):
        asked = asyncio.ensure_future(peer.jail.exchange(sent, wall_s=LONGEST_S if patient else NOBODY_WAITS_S))
        await asyncio.sleep(0)
        telling = asyncio.ensure_future(way(peer, frame, dice))
        try:
            return await asked
        except ProgramCrashed as crash:
            return crash
        finally:
            await telling


def wire(forger: Forger) -> bytes:
    """Return a forged frame on its way: mostly with its length, now and then with another, none, or a second one."""
    frame, dice = forger.frame()[1], forger.dice
    size = dice.choice((None, None, None, 0, 3, len(frame) + 1, LIMITS.frame_bytes + 1, 2**32 - 1))
    data = framed(frame)
    return dice.choice((framed(frame, size), data, frame, data * 2, data[: dice.randrange(9)]))


async def started(command: tuple[str, ...]) -> Jail:
    async with asyncio.timeout(LONGEST_S):
        return await Jail.start(list(command), LIMITS)


async def led(command: tuple[str, ...], forger: Forger) -> str:
    """Lead one process to its end, and return what it came to."""
    jail = await started(command)
    try:
        async with asyncio.timeout(LONGEST_S):
            return judged(await jail.exchange(b"{}", wall_s=0.5), forger.first_call)
    except ProgramCrashed as crash:
        return _cause(crash)
    finally:
        async with asyncio.timeout(LONGEST_S):
            await jail.end()


def _cause(crash: ProgramCrashed) -> str:
    assert crash.kind in ENDS, crash.kind
    assert "\n" not in crash.message
    assert len(crash.message) < 300
    return crash.kind
