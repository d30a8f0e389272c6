"""The definitions of tools that were last allowed, by which a changed tool is recognised in any later run."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from store.database.database import Database
from store.database.identity import lock_epoch
from store.database.schema import tool_definitions
from store.database.transactions import reading, writing

FIRST_SIGHT = "first sight"
_KEPT = 5
"""How many definitions of one tool stay allowed: while workers are replaced, two of them alternate."""
_VERSIONS = 64
_OF_TOOL = (
    select(tool_definitions)
    .where(tool_definitions.c.tool == bindparam("tool_"))
    .order_by(tool_definitions.c.allowed_at.desc(), tool_definitions.c.digest)
)
_DIGESTS = select(tool_definitions.c.tool, tool_definitions.c.digest)
_DELETE = delete(tool_definitions).where(
    tool_definitions.c.tool == bindparam("tool_"), tool_definitions.c.digest == bindparam("digest_")
)


@dataclass(frozen=True, slots=True)
class AllowedDefinition:
    """Hold what a tool said of itself when it was allowed."""

    tool: str
    digest: str
    said: Mapping[str, Any]
    """The parts of the definition, without secrets."""
    allowed_by: str
    allowed_at: float


class ToolDefinitions:
    """Remember the last definitions of each tool that were allowed: the first one met, and those that people accept."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Read time from `clock`, in unix seconds."""
        self.database = database
        self._clock = clock
        self._unchanged: OrderedDict[str, None] = OrderedDict()

    def is_unchanged(self, version: str) -> bool:
        """Return whether this version of a catalog was found without a changed tool before."""
        return version in self._unchanged

    async def changed(
        self,
        version: str,
        digests: Mapping[str, str],
        said: Callable[[Collection[str]], Mapping[str, Any]],
        earlier: Mapping[str, str] | None = None,
    ) -> frozenset[str]:
        """Return the tools of a catalog whose definition is none of those last allowed.

        The definition of a tool that is met for the first time is allowed from now on; `said` returns what the named
        tools say of themselves. `earlier` holds the digests that older versions gave to the same definitions: what is
        allowed under one is allowed from now on under its new digest, too.
        """
        allowed, earlier = await self.digests(), earlier or {}
        new = [tool for tool in digests if tool not in allowed]
        if new:
            allowed |= await self._pinned(new, digests, said(new))
        unknown = {tool for tool, digest in digests.items() if digest not in allowed[tool]}
        renamed = {tool: earlier[tool] for tool in unknown if earlier.get(tool) in allowed[tool]}
        if renamed:
            await self._carry_over(renamed, digests, said(renamed))
        changed = frozenset(unknown - renamed.keys())
        if not changed:
            self._unchanged[version] = None
            while len(self._unchanged) > _VERSIONS:
                self._unchanged.popitem(last=False)
        return changed

    @reading
    def digests(self, connection: Connection) -> dict[str, set[str]]:
        """Return the digests of the definitions that are allowed, by tool."""
        found: dict[str, set[str]] = {}
        for tool, digest in connection.execute(_DIGESTS):
            found.setdefault(tool, set()).add(digest)
        return found

    @writing
    def allow(self, connection: Connection, tool: str, digest: str, said: Mapping[str, Any], by: str) -> None:
        """Add a definition that a person accepted; a repeat changes nothing."""
        lock_epoch(connection)
        self._add(connection, self._row(tool, digest, said, by))

    def _add(self, connection: Connection, new: dict[str, Any]) -> None:
        """Add what is allowed, and forget the oldest of the same tool."""
        tool = new["tool"]
        rows = connection.execute(_OF_TOOL, {"tool_": tool}).all()
        if new["digest"] in {row.digest for row in rows}:
            return
        connection.execute(insert(tool_definitions), [new])
        if oldest := [{"tool_": tool, "digest_": row.digest} for row in rows[_KEPT - 1 :]]:
            connection.execute(_DELETE, oldest)

    @reading
    def of_tool(self, connection: Connection, tool: str) -> list[AllowedDefinition]:
        """Return the definitions of a tool that are allowed, the latest first."""
        return [AllowedDefinition(**row) for row in connection.execute(_OF_TOOL, {"tool_": tool}).mappings()]

    @writing
    def _pinned(
        self, connection: Connection, new: Collection[str], digests: Mapping[str, str], said: Mapping[str, Any]
    ) -> dict[str, set[str]]:
        """Pin what is met for the first time, unless another worker was faster."""
        lock_epoch(connection)
        known = self.digests.within(connection)
        rows = [self._row(tool, digests[tool], said[tool], FIRST_SIGHT) for tool in new if tool not in known]
        if rows:
            connection.execute(insert(tool_definitions), rows)
        return known | {row["tool"]: {row["digest"]} for row in rows}

    @writing
    def _carry_over(
        self, connection: Connection, renamed: Mapping[str, str], digests: Mapping[str, str], said: Mapping[str, Any]
    ) -> None:
        """Keep what was allowed under an earlier digest under the new one, by whom and when it was allowed."""
        lock_epoch(connection)
        for tool, earlier in renamed.items():
            for row in connection.execute(_OF_TOOL, {"tool_": tool}).mappings().all():
                if row["digest"] == earlier:
                    self._add(connection, {**row, "digest": digests[tool], "said": said[tool]})

    def _row(self, tool: str, digest: str, said: Mapping[str, Any], by: str) -> dict[str, Any]:
        return {"tool": tool, "digest": digest, "said": said, "allowed_by": by, "allowed_at": self._clock()}
