"""A table of shapes in which models write programs: every way to lay out and start a script, with every kind of work.

A script is a piece of work in a layout. `shapes/works.txt` says what is computed and what comes out, the helpers at the
top parted from the rest by `---`; `shapes/layouts.txt` says where HELPERS and WORK stand and how the script is started.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

from sandbox.images.image import importable
from sandbox.programs.check import check_program
from sandbox.programs.sandbox import Sandbox
from tests.sandbox.playing import BINDINGS, Failed, play
from tests.sizes import sized

FOLDER = Path(__file__).parent / "shapes"
EACH = sized(5, 1)
"""How many scripts of the sample each layout is in."""
LANES = 3
ANYTHING = Signature([Parameter("others", Parameter.VAR_KEYWORD)])
FUNCTIONS = {provider: dict.fromkeys(functions, ANYTHING) for provider, functions in BINDINGS.items()}


@dataclass(frozen=True)
class Part:
    """One entry of a file: its name, what is said of it, and its source."""

    name: str
    source: str
    said: dict[str, Any] = field(default_factory=dict)
    """Of a work `result` and `calls`, of a layout the same where they differ, and `waits` where it cannot."""

    @property
    def waits(self) -> bool:
        """Return whether this work awaits something, or whether work may do so in this layout."""
        return self.said.get("waits", "await " in self.source or "async " in self.source or "WORK" in self.source)


def parts(name: str) -> list[Part]:
    """Return the entries of a file."""
    found: list[Part] = []
    for entry in (FOLDER / name).read_text(encoding="utf-8").split("=== ")[1:]:
        head, _, source = entry.partition("\n")
        named, _, said = head.partition(" ")
        found.append(Part(named, source.rstrip(), json.loads(said)))
    return found


WORKS, LAYOUTS = parts("works.txt"), parts("layouts.txt")


class Script(NamedTuple):
    """One script and what comes out of it."""

    name: str
    source: str
    result: Any
    calls: int


def script(work: Part, layout: Part) -> Script:
    """Return a piece of work in a layout."""
    helpers, _, rest = work.source.partition("---\n")
    lines: list[str] = []
    for line in layout.source.splitlines():
        depth = line[: len(line) - len(line.lstrip())]
        filled = {"HELPERS": helpers.rstrip(), "WORK": indent(rest, depth)}
        lines.append(filled.get(line.strip(), line))
    said = {"calls": 0, **work.said, **layout.said}
    return Script(f"{layout.name}-{work.name}", "\n".join(lines) + "\n", said["result"], said["calls"])


def fits(work: Part, layout: Part) -> bool:
    """Return whether the work can stand in the layout."""
    return layout.waits or not work.waits


def scripts() -> Iterator[Script]:
    """Yield every piece of work in every layout in which it can stand."""
    yield from (script(work, layout) for work in WORKS for layout in LAYOUTS if fits(work, layout))


def sample() -> list[Script]:
    """Return some scripts, among which is every piece of work and every layout."""
    chosen = (
        (WORKS[(place * 7 + number * 9) % len(WORKS)], layout)
        for place, layout in enumerate(LAYOUTS)
        for number in range(EACH)
    )
    fitting = [(work, layout) for work, layout in chosen if fits(work, layout)]
    for work in WORKS:
        if all(work is not each for each, _ in fitting):
            fitting.append((work, next(layout for layout in LAYOUTS if fits(work, layout))))
    for layout in LAYOUTS:
        if all(layout is not each for _, each in fitting):
            fitting.append((next(work for work in WORKS if fits(work, layout)), layout))
    return [script(work, layout) for work, layout in fitting]


async def fault_of(sandbox: Sandbox, script: Script) -> str | None:
    """Run a script in a jail; return what is wrong with what comes out, or None."""
    if faults := check_program(script.source, functions=FUNCTIONS, importable=importable("python")):
        return f"refused: {faults}"
    played = await play(sandbox, script.source, _answer)
    if played.halted.kind != "finished":
        return f"{played.halted.kind}: {played.halted.error}"
    if played.halted.result != script.result:
        return f"returned {played.halted.result!r} instead of {script.result!r}"
    made = sum(map(len, played.batches))
    return None if made == script.calls else f"made {made} calls instead of {script.calls}"


async def faults_of(sandbox: Sandbox, scripts: Iterable[Script]) -> dict[str, str]:
    """Run scripts, several at once; return what is wrong, by name."""
    found: dict[str, str] = {}
    left = iter(scripts)

    async def lane() -> None:
        for each in left:
            if (fault := await fault_of(sandbox, each)) is not None:
                found[each.name] = fault

    await asyncio.gather(*(lane() for _ in range(LANES)))
    return found


def _answer(tool: str, arguments: dict[str, Any]) -> Any:
    if arguments.get("fail"):
        raise Failed("Busy", "try again")
    return arguments
