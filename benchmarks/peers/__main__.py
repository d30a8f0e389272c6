"""Measure backstay beside two other engines and the bare floor, in turns, on the same server and stubs.

python -m benchmarks.peers [--quick] [--rounds 3] [--loaded 50] [--many 500] [--parked 500]

`make bench-peers` makes the environments of the two engines first. Only a whole run rewrites the table; one of other
sizes is printed.
"""

import argparse
import asyncio
from collections import defaultdict
from contextlib import ExitStack
from typing import NamedTuple

from benchmarks.page import publish
from benchmarks.peers.bench import Bench, tokens
from benchmarks.peers.engines import KINDS, packages, stubs, worker
from benchmarks.peers.figures import Figures, medians, render
from benchmarks.stage import temporal

WRITES = "backstay, writes"
SAMPLES = [(kind, kind, "read") for kind in KINDS] + [(WRITES, "backstay", "write")]
"""What is measured in turns: under which name, on whose worker, and what the model does at each step."""


class Sizes(NamedTuple):
    """Say how much is measured."""

    rounds: int = 3
    steps: int = 100
    """At least so many steps in a sample of runs that follow each other."""
    loaded: int = 50
    many: int = 500
    parked: int = 500


WHOLE = Sizes()
QUICK = Sizes(rounds=1, steps=10, loaded=5, many=50, parked=50)
IN_TURN = (10, 50)
LOADED_STEPS, MANY_STEPS = 10, 2


async def measure(sizes: Sizes) -> Figures:
    """Measure all kinds in turns, round by round; what hardly varies, only once."""
    async with temporal() as (client, address, server):
        with ExitStack() as stack:
            bench = Bench(client, server, stack.enter_context(stubs(address)))
            kinds = await _with_workers(bench, sizes)
            for kind in KINDS:
                kinds[kind]["parked_kb"] = await bench.parked_kb(kind, sizes.parked)
    return {
        "kinds": kinds,
        "sizes": list(IN_TURN),
        "loaded": {"runs": sizes.loaded, "steps": LOADED_STEPS},
        "many": {"runs": sizes.many, "steps": MANY_STEPS},
        "parked": sizes.parked,
        "rounds": sizes.rounds,
        "packages": packages(),
    }


async def _with_workers(bench: Bench, sizes: Sizes) -> dict[str, Figures]:
    with ExitStack() as stack:
        for kind in KINDS:
            opening = worker(kind, kind, bench.given)
            bench.pids[kind] = await asyncio.to_thread(stack.enter_context, opening)
        for _, kind, word in SAMPLES:
            await bench.in_turn(kind, word, steps=5, runs=2)
        samples: dict[tuple[str, ...], list[Figures]] = defaultdict(list)
        for _ in range(sizes.rounds):
            await _round(bench, sizes, samples)
        kinds: dict[str, Figures] = {name: {"in_turn": {}} for name, _, _ in SAMPLES}
        for (name, *path), found in samples.items():
            place = kinds[name]
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = medians(found)
        for kind in KINDS:
            history = bench.histories[kind, "read", IN_TURN[-1]]
            kinds[kind]["replay_ms"] = await bench.replay_ms(kind, history)
        for kind in KINDS[1:]:
            kinds[kind]["tokens"] = {str(steps): tokens(await bench.bodies(kind, steps)) for steps in IN_TURN}
    return kinds


async def _round(bench: Bench, sizes: Sizes, samples: dict[tuple[str, ...], list[Figures]]) -> None:
    for steps in IN_TURN:
        for name, kind, word in SAMPLES:
            found = await bench.in_turn(kind, word, steps, runs=max(1, sizes.steps // steps))
            samples[name, "in_turn", str(steps)].append(found)
    for name, kind, word in SAMPLES:
        samples[name, "loaded"].append(await bench.at_once(kind, word, LOADED_STEPS, sizes.loaded))
    for kind in KINDS:
        samples[kind, "many"].append(await bench.at_once(kind, "read", MANY_STEPS, sizes.many))


def main() -> None:
    """Measure and print; write the table after a whole run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="try a tenth of everything, once")
    for name in WHOLE._fields:
        parser.add_argument(f"--{name}", type=int)
    options = vars(parser.parse_args())
    sizes = (QUICK if options.pop("quick") else WHOLE)._replace(**{k: v for k, v in options.items() if v is not None})
    result = asyncio.run(measure(sizes))
    if sizes == WHOLE:
        publish("peers", result, render(result))
    else:
        print(render(result))


if __name__ == "__main__":
    main()
