"""The forecast of a rehearsal: what a plan or a program would do, as people approve it."""

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import Field

from backstay.approvals.layout import argument_lines
from backstay.frozen import Frozen
from backstay.shown import one_line, shown_arguments


class ForecastEntry(Frozen):
    """Foretell one call: a simulated value in its arguments is a token `⟦sim:<idx>:<pointer>⟧`."""

    idx: int
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    digest: str = ""
    """Of the whole arguments, also where long ones are shown in part."""
    simulated: bool = False
    """Whether it was not made: its answer is made up, or comes from a copy of the workspace."""
    assumed: bool = False
    """Whether it reads behind a simulated write, so that the real answer may be another one."""

    @property
    def writes(self) -> bool:
        """Return whether it is a write, which the real run may make as it is foretold."""
        return self.simulated and not self.assumed

    def shown(self, most: int) -> "ForecastEntry":
        """Return it as people see it, with at most about as many characters of arguments as given."""
        shown = shown_arguments(self.arguments, most).arguments
        return self.model_copy(update={"tool": one_line(self.tool, 200), "arguments": shown})


def shown_forecast(entries: Iterable[ForecastEntry], most: int) -> tuple[ForecastEntry, ...]:
    """Return a forecast as people see it, with at most about as many characters of arguments in all as given."""
    found = tuple(entries)
    return tuple(entry.shown(max(80, most // max(1, len(found)))) for entry in found)


def forecast_lines(forecast: Iterable[ForecastEntry]) -> Iterator[str]:
    """Yield a shown forecast as lines: each call with how sure it is, and its arguments under it."""
    for entry in forecast:
        read = "assumed" if entry.assumed else "read"
        said = "would be made" if entry.writes else read
        yield f"{entry.idx}. {entry.tool} ({said})"
        for name, value in entry.arguments.items():
            yield from (f"   {line}" for line in argument_lines(name, value))
