"""An MCP server that cannot repeat what it is called with."""

from toolbox.mcp.provider import McpProvider
from toolbox.mcp.scrubbing import Scrubber
from toolbox.providers.answer import Answer
from toolbox.providers.listing import Listing
from toolbox.providers.provider import ProviderCall
from toolbox.providers.server_tasks import TaskRequest


class ScrubbedServer:
    """Offer a server, with a mask in all that it says for each secret that it is called with."""

    kind = "mcp"

    def __init__(self, inner: McpProvider, scrubber: Scrubber) -> None:
        """Open nothing yet."""
        self.name = inner.name
        self._inner, self._scrubber = inner, scrubber

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return the tools."""
        return self._scrubber.listing(await self._inner.list(fresh=fresh))

    async def wait_started(self, patience_s: float) -> None:
        """Wait for a server that is starting."""
        await self._inner.wait_started(patience_s)

    async def call(self, call: ProviderCall) -> Answer:
        """Make a call."""
        try:
            return self._scrubber.answer(await self._inner.call(self._scrubber.call(call)))
        except Exception as error:
            raise self._scrubber.error(error) from None

    async def follow(self, request: TaskRequest) -> Answer:
        """Ask about a task by which the server has answered."""
        try:
            return self._scrubber.answer(await self._inner.follow(request))
        except Exception as error:
            raise self._scrubber.error(error) from None

    async def close(self) -> None:
        """End the connection to the server."""
        await self._inner.close()
