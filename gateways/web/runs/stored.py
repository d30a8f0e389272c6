"""Show what a run has stored, a page at a time, without the secrets that were in it."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from backstay.errors import ArgumentsInvalid
from backstay.shown import one_line
from backstay.task.reading import LONGEST_PATH, Reading, at_path, page_of, steps_to
from backstay.task.reading import Page as Part
from gateways.web.guard import is_for_programs
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from people.runs.finding import find

_ROWS, _CHARACTERS = 50, 20_000
"""How much of a list, or of a string, one page shows unless it is asked for more."""
_MOST_COLUMNS = 12
_MOST_ENTRIES = 200
_CELL = 120


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the routes of stored results."""

    async def blob(request: Request, visitor: Visitor) -> Response:
        found = await find(
            page.sources, visitor.by, request.path_params["workflow_id"], request.query_params.get("run")
        )
        reading = _reading(request)
        if found.row is None:
            raise ArgumentsInvalid("ref: this run has stored nothing yet")
        found.row.require_not_pruned()
        whole = await page.store.blobs.of(found.run).named_by_a_person(str(reading.ref))
        steps = steps_to(whole, reading.path)
        value = steps[-1][1] if steps else whole
        match request.query_params.get("as", ""):
            case "json":
                return _download(value, str(reading.ref), "json")
            case "text":
                return _download(value, str(reading.ref), "txt")
            case _:
                part = await asyncio.to_thread(page_of, value, reading)
        if is_for_programs(request.scope):
            return page.json(visitor, part.answer(reading))
        address = partial(_address, {"run": found.run_id} if "run" in request.query_params else {})
        keys = [key for key, _ in steps]
        shown = _shown(value, part, reading) | _around(address, keys, reading, part)
        inner = partial(_inner, address, whole, keys)
        return page.render(request, visitor, "runs/blob.html", found=found, inner=inner, **shown)

    return [page.get("/blobs/{workflow_id:id}/{ref:id}", blob)]


def _reading(request: Request) -> Reading:
    """Return what is asked for; raises ArgumentsInvalid naming the field."""
    asked = request.query_params

    def number(name: str) -> int | None:
        text = asked.get(name, "")
        if text and not (text.isdecimal() and text.isascii() and len(text) <= 12):
            raise ArgumentsInvalid(f"{name}: {one_line(text, 40)!r} is not a whole number; give one from 0 on")
        return int(text) if text else None

    limit = number("limit")
    try:
        return Reading(
            ref=request.path_params["ref"], path=asked.get("path", ""), offset=number("offset") or 0, limit=limit
        )
    except ValueError:
        raise ArgumentsInvalid("path: at most 1000 characters; limit: at least 1; ref: 40 hexadecimal digits") from None


def _download(value: Any, ref: str, kind: str) -> Response:
    """Return a payload whole, as a file that no browser takes for a page."""
    is_text = kind == "txt" and isinstance(value, str)
    text = value if is_text else json.dumps(value, indent=2, ensure_ascii=False)
    named = f'attachment; filename="{ref[:12]}.{kind}"'
    types = {"json": "application/json", "txt": "text/plain; charset=utf-8"}
    body = text.encode("utf-8", "replace")
    return Response(body, media_type=types[kind], headers={"Content-Disposition": named})


def _address(run: dict[str, str], **more: Any) -> str:
    asked = {name: value for name, value in (run | more).items() if value not in ("", None, 0)}
    return f"?{urlencode(asked)}"


def _inner(address: Callable[..., str], whole: Any, keys: list[str], key: str | int, item: Any) -> str:
    """Return the address of an entry; empty where it has no page, or its path is too long or leads elsewhere."""
    path = ".".join([*keys, str(key)])
    try:
        leads = _opens(item) and len(path) <= LONGEST_PATH and at_path(whole, path) is item
    except ArgumentsInvalid:
        leads = False
    return address(path=path) if leads else ""


def _around(address: Callable[..., str], keys: list[str], reading: Reading, part: Part) -> dict[str, Any]:
    """Return the addresses beside a page: of the parts above it, of the next part, and of the whole as a file."""
    crumbs = [(key, address(path=".".join(keys[: at + 1]))) for at, key in enumerate(keys)]
    before = max(0, reading.offset - (reading.limit or _ROWS))
    return {
        "ref": reading.ref,
        "crumbs": crumbs,
        "top": address(),
        "next": None if part.next is None else address(path=reading.path, offset=part.next, limit=reading.limit),
        "previous": address(path=reading.path, offset=before, limit=reading.limit) if reading.offset else None,
        "json_file": address(path=reading.path, **{"as": "json"}),
        "text_file": address(path=reading.path, **{"as": "text"}),
    }


def _shown(value: Any, part: Part, reading: Reading) -> dict[str, Any]:
    """Return a part of a payload in the form that suits it: a table, a list of entries, or a string."""
    match value:
        case list() if (columns := _columns(part.value)) is not None:
            rows = [(row, [_cell(row.get(name)) for name in columns]) for row in part.value]
            return {"form": "table", "columns": columns, "rows": rows, "offset": reading.offset, "total": part.total}
        case list():
            entries = [(reading.offset + at, _cell(item), item) for at, item in enumerate(part.value)]
            return {"form": "entries", "entries": entries, "offset": reading.offset, "total": part.total}
        case dict() if part.value is value and len(value) <= _MOST_ENTRIES:
            entries = [(name, _cell(item), item) for name, item in value.items()]
            return {"form": "entries", "entries": entries, "offset": 0, "total": len(value)}
        case _:
            text = part.value if isinstance(part.value, str) else json.dumps(part.value, indent=2, ensure_ascii=False)
            return {"form": "text", "text": text, "offset": reading.offset, "total": part.total}


def _columns(items: list[Any]) -> list[str] | None:
    """Return the names that all objects of a list have in common, where they are rows of one table."""
    if not items or not all(isinstance(item, dict) and item for item in items):
        return None
    names: dict[str, None] = dict.fromkeys(str(name) for item in items for name in item)
    nested = any(isinstance(value, dict | list) for item in items for value in item.values())
    return None if nested or len(names) > _MOST_COLUMNS else list(names)


def _opens(item: Any) -> bool:
    """Return whether an entry has a page of its own."""
    return bool(item) and (isinstance(item, dict | list) or (isinstance(item, str) and len(item) > _CELL))


def _cell(item: Any) -> str:
    match item:
        case None:
            return ""
        case str():
            return one_line(item, _CELL)
        case dict():
            return one_line(json.dumps(item, ensure_ascii=False), _CELL)
        case list():
            return f"{len(item):,} items"
        case _:
            return one_line(json.dumps(item, ensure_ascii=False), _CELL)
