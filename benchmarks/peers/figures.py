"""Put the figures of all kinds into one table, in which the best engine of each row is marked."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]

HEADS = {
    "floor": "floor",
    "openai-agents": "OpenAI Agents plugin",
    "pydantic-ai": "pydantic-ai",
    "backstay": "backstay",
    "backstay, writes": "backstay, writes",
}
COMPARED = ("openai-agents", "pydantic-ai", "backstay")
"""The engines, which do the same; the floor does nothing, and the peers do not tell a write from a read."""


@dataclass(frozen=True)
class Row:
    """Hold what stands in a row: a figure of each kind, how it is written, and whether more of it is better."""

    what: str
    figure: Callable[[Figures], float]
    written: Callable[[Figures], str]
    more_is_better: bool = False


def medians(samples: list[Figures]) -> Figures:
    """Return the median of each figure of some samples of the same kind."""
    return {key: statistics.median(sample[key] for sample in samples) for key in samples[0]}


def rows(result: Figures) -> list[Row]:
    """Return the rows of the table, in order; they name the sizes that were measured."""
    short, long = (str(size) for size in result["sizes"])
    loaded, many = result["loaded"], result["many"]
    floor = result["kinds"]["floor"]
    wall, replayed = floor["in_turn"][long]["wall_ms"], floor["replay_ms"]
    return [
        *(_cpu(size) for size in (long, short)),
        _number(f"{loaded['runs']} runs of {loaded['steps']} at once, steps/s", "loaded", "steps_per_s", more=True),
        _number("worker ms a step under that load", "loaded", "worker_ms"),
        _number(f"{many['runs']} runs of {many['steps']} steps at once, runs/s", "many", "runs_per_s", more=True),
        *(_counted(f"prompt tokens of a run of {size}", "tokens", size) for size in (short, long)),
        _counted(f"kB per parked run, over {result['parked']}", "parked_kb"),
        *(_counted(f"history, bytes a step, runs of {size}", "in_turn", size, "bytes") for size in (short, long)),
        _ratio(f"wall a step, runs of {long}, against the floor", wall, "in_turn", long, "wall_ms"),
        _ratio(f"replay of {long} steps, against the floor", replayed, "replay_ms"),
    ]


def _at(figures: Figures, *path: str) -> Any:
    found: Any = figures
    for name in path:
        found = found[name]
    return found


def _cpu(size: str) -> Row:
    def parts(figures: Figures) -> tuple[float, float]:
        spent = _at(figures, "in_turn", size)
        return spent["worker_ms"], spent["server_ms"]

    what = f"CPU ms a step, worker + server, runs of {size}"
    return Row(what, lambda figures: sum(parts(figures)), lambda figures: "{:.0f} + {:.0f}".format(*parts(figures)))


def _number(what: str, *path: str, more: bool = False) -> Row:
    return Row(what, lambda figures: _at(figures, *path), lambda figures: f"{_at(figures, *path):.1f}", more)


def _counted(what: str, *path: str) -> Row:
    return Row(what, lambda figures: _at(figures, *path), lambda figures: f"{_at(figures, *path):,.0f}")


def _ratio(what: str, floor: float, *path: str) -> Row:
    return Row(what, lambda figures: _at(figures, *path), lambda figures: f"{_at(figures, *path) / floor:.2f}")


def best(row: Row, kinds: dict[str, Figures]) -> str:
    """Return the engine that is best in a row."""
    choose = max if row.more_is_better else min
    return choose(COMPARED, key=lambda kind: row.figure(kinds[kind]))


def render(result: Figures) -> str:
    """Return the table, and below it what was measured how often."""
    kinds = result["kinds"]
    lines = [f"| | {' | '.join(HEADS.values())} |", f"|---{'|---' * len(HEADS)}|"]
    for row in rows(result):
        leader = best(row, kinds)
        cells = [_cell(row, kinds[kind], marked=kind == leader) for kind in HEADS]
        lines.append(f"| {row.what} | {' | '.join(cells)} |")
    packages = ", ".join(f"{name} {version}" for name, version in result["packages"].items())
    return "\n".join([*lines, "", f"Rounds: {result['rounds']}.", f"Packages: {packages}."])


def _cell(row: Row, figures: Figures, *, marked: bool) -> str:
    try:
        text = row.written(figures)
    except KeyError:
        # Not each kind is measured in each row.
        return ""
    return f"**{text}**" if marked else text
