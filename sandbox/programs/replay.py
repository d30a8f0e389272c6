"""Bring a new jail to where a program stood, by sending it what its journal holds."""

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from backstay.canonical import canonical
from backstay.errors import ProgramDiverged, SandboxLost
from sandbox.limits import Limits
from sandbox.programs.crash import ProgramCrashed
from sandbox.programs.frames import Done, read_frame
from sandbox.programs.jail import Jail
from sandbox.programs.types import ProgramCall, Round

_FACTOR = 3
_GRACE_S = 30.0
_AHEAD = 8
_Calls = tuple[ProgramCall, ...] | None


async def replay(
    jail: Jail,
    start_frame: bytes,
    rounds: Sequence[Round],
    *,
    tools: AbstractSet[str],
    limits: Limits,
) -> None:
    """Send the recorded frames and compare what the program asks for with what it asked for then.

    The last round may be the one in which the program ended; it must then end in the same bytes. Raises ProgramDiverged
    when the program does anything else than before, SandboxLost when the jail does not last until the end.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _FACTOR * sum(recorded.wall_s for recorded in rounds) + _GRACE_S
    frames = iter([start_frame, *(recorded.sent for recorded in rounds[1:])] if rounds else [])
    for number, recorded in enumerate(rounds):
        try:
            # The program finds the next frames in its pipe, so neither side waits for the other in every round.
            for frame in islice(frames, _AHEAD if number == 0 else 1):
                jail.send(frame)
            came = await jail.receive(wall_s=max(0.0, deadline - loop.time()))
        except ProgramCrashed as crash:
            raise SandboxLost(f"the jail was lost while round {number} was replayed: {crash.message}") from None
        # The same bytes ask for the same; only other bytes have to be understood.
        if came != recorded.came:
            _compare(rounds[: number + 1], came, tools, limits)


def _compare(rounds: Sequence[Round], came: bytes, tools: AbstractSet[str], limits: Limits) -> None:
    """Raise ProgramDiverged unless the frame asks for what the last of these rounds asked for."""
    number, first_call = len(rounds) - 1, 0
    try:
        for before in rounds[:-1]:
            first_call += len(_calls(before.came, first_call, tools, limits) or ())
        then = _calls(rounds[-1].came, first_call, tools, limits)
        now = _calls(came, first_call, tools, limits)
    except ProgramCrashed as crash:
        raise ProgramDiverged(f"round {number}: {crash.message}", call=first_call) from None
    _compare_calls(then, now, first_call, number)


def _compare_calls(then: _Calls, now: _Calls, first_call: int, number: int) -> None:
    if then is None:
        raise ProgramDiverged(f"round {number}: the program does not end as before")
    if now is None:
        raise ProgramDiverged(f"round {number}: the program ends where it called {then[0].tool}", call=first_call)
    for was, call in zip(then, now, strict=False):
        if was.tool != call.tool:
            raise ProgramDiverged(f"call {call.i}: the program calls {call.tool} instead of {was.tool}", call=call.i)
        if canonical(was.arguments) != canonical(call.arguments):
            raise ProgramDiverged(f"call {call.i}: the program calls {call.tool} with other arguments", call=call.i)
    if len(then) != len(now):
        raise ProgramDiverged(
            f"round {number}: the program makes {len(now)} calls instead of {len(then)}", call=first_call
        )


def _calls(frame: bytes, first_call: int, tools: AbstractSet[str], limits: Limits) -> _Calls:
    ended = read_frame(frame, tools=tools, first_call=first_call, limits=limits)
    return None if isinstance(ended, Done) else ended
