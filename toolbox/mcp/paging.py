"""Read a list of a server page by page, each entry once, and to an end that the list itself may not have."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from mcp import MCPError
from mcp.types import METHOD_NOT_FOUND, PaginatedRequestParams

from toolbox.mcp.streams import WHOLE

Entry = dict[str, Any]
ReadPage = Callable[[str | None], Awaitable[tuple[list[Entry], Any]]]
"""Returns the entries of a page, and what the server calls the next one."""
_PAGES = 100
_ASKED_S = 5.0


class KnownEntries(NamedTuple):
    """Hold what is known of lists, and how far that can be relied on."""

    entries: list[Entry]
    undisturbed: bool
    """Whether no fault came in between, so that asking again would find no more."""
    whole: bool
    """Whether they are all."""


def reader_of(list_page: Any, field: str, is_usable: Callable[[Any], bool]) -> ReadPage:
    """Return what reads the usable entries of a page by a method of the client's session."""

    async def page(cursor: str | None) -> tuple[list[Entry], Any]:
        result = await list_page(params=None if cursor is None else PaginatedRequestParams(cursor=cursor))
        said = (result.meta or {}).get(WHOLE) or {}
        listed = said.get(field)
        entries = [entry for entry in listed if is_usable(entry)] if isinstance(listed, list) else []
        return entries, said.get("nextCursor")

    return page


async def read_into(found: dict[str, Entry], read: ReadPage, name_of: Callable[[Entry], str], most: int) -> str:
    """Read a list, each entry once; return why there may be more."""
    seen, cursor = set[str](), None
    for _ in range(_PAGES):
        entries, following = await read(cursor)
        for entry in entries:
            if len(found) == most and name_of(entry) not in found:
                return f"only the first {most:,} are shown"
            found.setdefault(name_of(entry), entry)
        if not isinstance(following, str | int) or following == "":
            return ""
        cursor = str(following)
        if cursor in seen:
            return "the list has no end; these are the ones that were read"
        seen.add(cursor)
    return f"only the first {_PAGES} pages were read"


async def known_entries(lists: Iterable[ReadPage], name_of: Callable[[Entry], str], most: int) -> KnownEntries:
    """Return what lists hold, as far as they can be read within a short time; a server need not have all of them."""
    found: list[dict[str, Entry]] = []
    undisturbed = whole = True
    try:
        async with asyncio.timeout(_ASKED_S):
            for read in lists:
                found.append({})
                try:
                    whole = not await read_into(found[-1], read, name_of, most) and whole
                except MCPError as error:
                    undisturbed = error.code == METHOD_NOT_FOUND and undisturbed
    except Exception:  # whatever is wrong with its lists, its tools can be called
        undisturbed = False
    return KnownEntries([entry for each in found for entry in each.values()], undisturbed, whole and undisturbed)
