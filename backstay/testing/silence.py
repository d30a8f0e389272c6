"""The answer that never comes."""

from collections.abc import Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class Silence(Response):
    """Say nothing until the client is gone, after making it go where `hang_up` is given."""

    def __init__(self, hang_up: Callable[[], None] | None = None) -> None:
        super().__init__()
        self._hang_up = hang_up

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for the end of the connection."""
        if self._hang_up is not None:
            self._hang_up()
        while (await receive())["type"] != "http.disconnect":
            pass
