"""Draw a dashboard of Grafana's as a page, from its file and what a real Prometheus answers. Grafana takes no part."""

import math
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from docs.dashboard.prometheus import Prometheus

HERE = Path(__file__).resolve().parent
NOTE = "Drawn from docs/monitoring/dashboard.json with the answers of a real Prometheus, not by Grafana."
NO_DATA = "No data"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#a3459b", "#b88300", "#2f9fd8", "#6b4ba3", "#7a2e1d", "#4d4d4d", "#5f8700")
"""Lines of a panel."""
THRESHOLDS = {"green": "#1a7f37", "orange": "#b35900", "red": "#c62828"}
STEP_S = 1
RATE_S = 10
"""What stands for Grafana's `$__rate_interval` in a time as short as this one."""
_LINES = 4
_TICKS_S = (5, 10, 15, 20, 30, 60, 120, 300, 600)
_MOST_TICKS = 7


@dataclass(frozen=True)
class Window:
    """The time shown, in seconds since 1970."""

    begin: float
    end: float

    @property
    def length(self) -> int:
        """Return how many seconds it has."""
        return max(1, math.ceil(self.end - self.begin))

    @property
    def start(self) -> float:
        """Return the first step: whole steps before the end, so that the last one shows what has just come."""
        return self.end - self.length

    def filled(self, expression: str) -> str:
        """Return an expression with this time in the places that Grafana fills."""
        filled = expression.replace("$__rate_interval", f"{RATE_S}s").replace("$__range", f"{self.length}s")
        if "$" in filled:
            raise ValueError(f"nothing is known for a variable of {filled}")
        return filled

    def ticks(self) -> list[tuple[float, str]]:
        """Return places from 0 to 100, with minutes and seconds since the beginning."""
        step = next((each for each in _TICKS_S if self.length / each < _MOST_TICKS), _TICKS_S[-1])
        return [(100 * at / self.length, f"{at // 60}:{at % 60:02}") for at in range(0, self.length + 1, step)]


def _number(value: float) -> str:
    return f"{value:,.4g}"


def _seconds(value: float) -> str:
    for least, size, name in ((3600, 3600, "h"), (60, 60, "min"), (1, 1, "s")):
        if value >= least:
            return f"{value / size:.3g} {name}"
    return f"{value * 1000:.3g} ms" if value else "0 s"


def _dollars(value: float) -> str:
    return f"${value:,.4f}"


UNITS = {"short": ("number", _number), "s": ("time", _seconds), "currencyUSD": ("US dollars", _dollars)}


def in_order(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the panels as they are read: row by row."""
    return sorted(dashboard["panels"], key=lambda panel: (panel["gridPos"]["y"], panel["gridPos"]["x"]))


def words(dashboard: dict[str, Any]) -> str:
    """Return what a drawing shows that is the same each time: titles, units, descriptions and legends.

    A label of a legend stands there by its name in capitals, for its values differ.
    """
    lines = [dashboard["title"], dashboard["description"], NOTE]
    for panel in in_order(dashboard):
        lines += [panel["title"], UNITS[_defaults(panel)["unit"]][0], panel["description"]]
        if panel["type"] == "timeseries":
            lines += [_pattern(target) for target in panel["targets"]]
    return "\n".join(lines) + "\n"


async def page_of(dashboard: dict[str, Any], prometheus: Prometheus, window: Window) -> str:
    """Return a page with every panel at its place."""
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    panels = [await _panel(panel, prometheus, window) for panel in in_order(dashboard)]
    template = environment.get_template("dashboard.html.j2")
    return template.render(dashboard=dashboard, note=NOTE, no_data=NO_DATA, panels=panels, times=window.ticks())


def _defaults(panel: dict[str, Any]) -> dict[str, Any]:
    return panel["fieldConfig"]["defaults"]


def _pattern(target: dict[str, Any]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: found[1].upper(), target["legendFormat"])


async def _panel(panel: dict[str, Any], prometheus: Prometheus, window: Window) -> dict[str, Any]:
    known = {"title": panel["title"], "description": panel["description"], "place": panel["gridPos"]}
    known |= {"unit": UNITS[_defaults(panel)["unit"]][0], "type": panel["type"]}
    match panel["type"]:
        case "stat":
            return known | {"values": [value async for value in _values(panel, prometheus, window)]}
        case "timeseries":
            return known | await _lines(panel, prometheus, window)
        case other:
            raise ValueError(f"{panel['title']}: nothing draws panels of the type {other}")


async def _values(panel: dict[str, Any], prometheus: Prometheus, window: Window) -> AsyncIterator[dict[str, str]]:
    shown = UNITS[_defaults(panel)["unit"]][1]
    steps = _defaults(panel).get("thresholds", {}).get("steps", [{"color": "green", "value": None}])
    for target in panel["targets"]:
        found = await prometheus.get("query", query=window.filled(target["expr"]), time=str(window.end))
        for series in found["result"]:
            value = float(series["value"][1])
            reached = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
            yield {"text": shown(value), "color": THRESHOLDS[reached[-1]]}


async def _lines(panel: dict[str, Any], prometheus: Prometheus, window: Window) -> dict[str, Any]:
    span = {"start": str(window.start), "end": str(window.end), "step": str(STEP_S)}
    found: list[tuple[str, str, list[tuple[float, float]]]] = []
    for target in panel["targets"]:
        answer = await prometheus.get("query_range", query=window.filled(target["expr"]), **span)
        for series in answer["result"]:
            points = [(float(at), float(value)) for at, value in series["values"] if math.isfinite(float(value))]
            # What is never a number is no line, and so it has no legend.
            if points:
                found.append((_pattern(target), _name(target, series["metric"]), points))
    top, rungs = _scale(max((value for *_, points in found for _, value in points), default=0))
    shown = UNITS[_defaults(panel)["unit"]][1]
    lines: list[dict[str, Any]] = []
    for number, (pattern, name, points) in enumerate(found):
        pieces = list(_pieces(points, window, top))
        # Dashes let a line be seen below another, and tell lines of one color apart.
        covers = any(value for _, value in points) and any(line["pieces"] == pieces for line in lines)
        look = {"color": COLORS[number % len(COLORS)], "dashes": covers or number >= len(COLORS)}
        lines.append({"pattern": pattern, "name": name, "pieces": pieces, **look})
    return {"rungs": [(100 * rung / top, shown(rung)) for rung in rungs], "lines": lines}


def _name(target: dict[str, Any], labels: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), target["legendFormat"])


def _scale(most: float) -> tuple[float, list[float]]:
    """Return where the panel ends above, and its lines of round numbers; every panel begins at zero."""
    if most <= 0:
        return 1.0, [0.0, 1.0]
    rough = most / _LINES
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * each for each in (1, 2, 2.5, 5, 10) if size * each >= rough * (1 - 1e-9))
    count = math.ceil(most / step - 1e-9)
    return step * count, [step * number for number in range(count + 1)]


def _pieces(points: list[tuple[float, float]], window: Window, top: float) -> Iterator[str]:
    """Yield the points of each piece of a line, from 0 to 100: it is broken where values are missing."""
    piece: list[str] = []
    before = -math.inf
    for at, value in points:
        if piece and at - before > 1.5 * STEP_S:
            yield " ".join(piece)
            piece = []
        piece.append(f"{100 * (at - window.start) / window.length:.2f},{100 - 100 * value / top:.2f}")
        before = at
    # A line of one point is drawn as a dot.
    yield " ".join(piece if len(piece) > 1 else piece * 2)
