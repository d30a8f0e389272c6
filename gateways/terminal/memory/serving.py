"""Offer the memory of one user over MCP: it can be searched and read, and nothing else."""

from typing import TYPE_CHECKING, Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from backstay.data_files import data_beside
from backstay.errors import BackstayError
from backstay.shown import one_line
from backstay.version import version
from gateways.mcp_serving import answered, failed, serve_stdio

if TYPE_CHECKING:
    from store.store import Store


TOOLS = data_beside(__file__)
_MOST = 20
Context = ServerRequestContext[Any]


class MemoryServer:
    """Answer for one user, who was named as the server was started; no request can name another one."""

    def __init__(self, store: "Store", owner: str) -> None:
        """Read in this store."""
        self._store = store
        self._owner = owner

    def server(self) -> Server[Any]:
        """Return the MCP server."""
        return Server(
            "backstay-memory",
            version=version(),
            instructions=TOOLS["instructions"].format(user=one_line(self._owner, 200)),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(self, _context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        reads = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
        tools = [
            types.Tool(name=name, description=tool["description"], input_schema=tool["input_schema"], annotations=reads)
            for name, tool in TOOLS["tools"].items()
        ]
        return types.ListToolsResult(tools=tools)

    async def _call(self, _context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            told = await self._answer(params.name, params.arguments or {})
        except BackstayError as error:
            return failed(str(error))
        return told if isinstance(told, types.CallToolResult) else answered(told)

    async def _answer(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | types.CallToolResult:
        match name, arguments:
            case "search_memory", {"query": str(query)}:
                limit = _number(arguments.get("limit"), 8)
                found = await self._store.memory.search(self._owner, query, limit=min(limit, _MOST))
                return {"items": [recalled.told() for recalled in found]}
            case "show_memory", {"id": int(number)} if not isinstance(number, bool):
                shown = await self._store.memory.show(self._owner, number)
                return failed(f"there is no item {number}") if shown is None else shown.told()
            case (("search_memory" | "show_memory"), _):
                return failed(f"{name}: give {' and '.join(TOOLS['tools'][name]['input_schema']['required'])}")
            case _:
                return failed(f"there is no tool {one_line(name, 80)!r}")


async def serve(store: "Store", owner: str) -> None:
    """Serve one client until it leaves."""
    await serve_stdio(MemoryServer(store, owner).server())


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
