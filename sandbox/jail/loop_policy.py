"""Give whoever asks for an event loop the one there is."""

from asyncio import events
from typing import Any


class LoopPolicy(events.AbstractEventLoopPolicy):  # pyright: ignore[reportGeneralTypeIssues] - it is a class at run time
    """Know one loop, which asyncio.run and get_event_loop use too."""

    def __init__(self, loop: Any) -> None:
        """Hold the program's loop."""
        self._loop = loop

    def get_event_loop(self) -> Any:
        """Return the loop."""
        return self._loop

    def set_event_loop(self, loop: Any) -> None:
        """Keep the loop there is."""

    def new_event_loop(self) -> Any:
        """Return the loop; there is no second one."""
        return self._loop
