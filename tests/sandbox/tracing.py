"""Run a generated program live, or from where a journal stands, and keep every byte of it."""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from backstay.canonical import canonical
from backstay.errors import ProgramDiverged
from sandbox.limits import Limits
from sandbox.programs.frames import ProgramCall, Round, read_frame
from sandbox.programs.sandbox import RoundOutcome, Sandbox
from tests.sandbox.playing import NOW, TOOLS, start_frame
from tests.sandbox.programs import program

STEPS_S = (0, 0.001, 0.25, 10, 3600, 86_400, -50)


@dataclass
class Trace:
    """Hold what a program did from some round on."""

    since: int
    """How many rounds were replayed."""
    rounds: list[Round] = field(default_factory=list)
    """All rounds, those that were replayed among them."""
    replayed: list[int] = field(default_factory=list)
    """How many rounds had to be replayed at each halt."""
    last: RoundOutcome | None = None

    def end(self) -> dict[str, Any]:
        assert self.last is not None
        names = ("kind", "result", "error", "output", "output_dropped")
        return {name: getattr(self.last, name) for name in names}


def answer(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool answers, or its error: it follows from the call alone."""
    digest = hashlib.sha256(canonical([tool, arguments]).encode()).digest()
    word, number = digest.hex()[:8], digest[1]
    match digest[0] % 8:
        case 0:
            return {"error": {"type": ("Refused", "NotFound")[number % 2], "message": f"no {word}\n\u00fc"}}
        case 1:
            return {"ok": {"tool": tool, **arguments}}
        case 2:
            return {"ok": {"id": word, "n": number, "none": None, "\u00f6": "\u2028\U0001f600", "share": number / 7}}
        case 3:
            return {"ok": [word, number, number / 255, -number * 10**20, True, [], {}]}
        case 4:
            return {"ok": number}
        case 5:
            return {"ok": word * (9_000 if number < 32 else 3)}
        case 6:
            return {"ok": [{"row": row, "word": word[row:]} for row in range(number % 9)]}
        case _:
            return {"ok": None}


def answers(number: int, place: int, calls: Sequence[ProgramCall]) -> bytes:
    """Return the frame that answers a batch: results in some order, at some time, which now and then goes back."""
    dice = random.Random(f"answers {number} {place}")
    results = [{"i": call.i, **answer(call.tool, call.arguments)} for call in calls]
    dice.shuffle(results)
    now = NOW + 1000 * place + dice.choice(STEPS_S)
    return json.dumps({"now": now, "results": results}, ensure_ascii=bool(number % 2)).encode()


async def run(
    sandbox: Sandbox, number: int, source: str, before: Sequence[Round] = (), *, seed: str | None = None
) -> Trace:
    """Run a program to its end, after the rounds before were replayed in a new jail; from then on its jail is kept."""
    start = start_frame(source, seed=seed or f"seed {number}", now=NOW + number)
    trace = Trace(len(before), list(before))
    made, frame = 0, None
    for place, item in enumerate(before):
        calls = read_frame(item.came, tools=TOOLS, first_call=made, limits=Limits())
        assert isinstance(calls, tuple)
        made += len(calls)
        frame = answers(number, place, calls)

    async def rounds() -> Sequence[Round]:
        return before

    while True:
        key = f"{id(trace)}/{len(trace.rounds)}"
        trace.last = await sandbox.advance(
            sandbox.image_hash, start, key=key, frame=frame, rounds=rounds, tools=TOOLS, first_call=made
        )
        trace.replayed.append(trace.last.replayed)
        trace.rounds.append(trace.last.round)
        if trace.last.kind != "waiting":
            return trace
        made += len(trace.last.calls)
        frame = answers(number, len(trace.rounds) - 1, trace.last.calls)
        sandbox.keep(f"{id(trace)}/{len(trace.rounds)}", trace.last)


async def compare(sandbox: Sandbox, other: Sandbox, number: int) -> Trace:
    """Run a program live, then replayed up to a random round in another sandbox, and demand that both are the same."""
    source = program(number)
    live = await run(sandbox, number, source)
    since = random.Random(f"since {number}").randrange(len(live.rounds))
    try:
        replayed = await run(other, number, source, live.rounds[:since])
    except ProgramDiverged as diverged:
        raise AssertionError(f"program {number}, {since} rounds replayed: {diverged}\n{source}") from None
    found = differences(live, replayed)
    assert not found, "\n".join([f"program {number}, {since} rounds replayed", *found, source])
    # One jail, with one replay, and then kept from round to round.
    assert replayed.replayed == [since, *[0] * (len(live.rounds) - since - 1)]
    assert set(live.replayed) == {0}
    return live


def differences(trace: Trace, other: Trace) -> list[str]:
    """Return where two traces differ, in words."""
    found = [] if len(trace.rounds) == len(other.rounds) else [f"{len(trace.rounds)} rounds and {len(other.rounds)}"]
    for place, (left, right) in enumerate(zip(trace.rounds, other.rounds, strict=False)):
        for what in ("sent", "came"):
            found += _difference(f"round {place}, {what}", getattr(left, what), getattr(right, what))
    for what, value in trace.end().items():
        found += _difference(what, value, other.end()[what])
    return found


def _difference(what: str, left: Any, right: Any) -> list[str]:
    if left == right:
        return []
    left, right = (side if isinstance(side, bytes | str) else repr(side) for side in (left, right))
    at = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    cut = slice(max(0, at - 60), at + 60)
    return [f"{what}, at {at}: {left[cut]!r} and {right[cut]!r}"]
