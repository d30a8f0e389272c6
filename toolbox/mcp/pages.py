"""Read a page of tools entry by entry: one that cannot be used is left out by name, and the others stay."""

import json
import math
from typing import Any

from backstay.shown import one_line
from toolbox.mcp.schemas import input_schema, output_schema

LEFT_OUT = "backstay/left-out"
"""Under this key of a page's `_meta`: what is wrong with the entries it no longer holds, each behind their server."""
MORE = "backstay/more"
"""Under this key, too: how many more entries are left out."""
FRESH_MS = 60_000
"""For how long a page counts that does not say it."""
NAMED = 50
"""How many entries of a list are named that are left out; of the others it says how many they are."""
_LONGEST_MS = 24 * 3600 * 1000
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SCHEMAS = ("inputSchema", "input_schema", "parameters")
_SAID = 40


def readable_page(said: dict[str, Any]) -> dict[str, Any]:
    """Return the page as the protocol has it, without the entries that are not tools; a list that is none stays."""
    tools = said.get("tools")
    if isinstance(tools, dict):  # by name
        tools = [{"name": name, **tool} if isinstance(tool, dict) else tool for name, tool in tools.items()]
    if tools is None:
        tools = []
    if not isinstance(tools, list):
        return said
    of_any_type = "resultType" in said
    found: list[dict[str, Any]] = []
    faults: list[str] = []
    left_out = 0
    for place, tool in enumerate(tools, 1):
        read = _read(tool, place, of_any_type=of_any_type)
        if isinstance(read, dict):
            found.append(read)
            continue
        left_out += 1
        if left_out <= NAMED:
            faults.append(read)
    cursor = said.get("nextCursor")
    if isinstance(cursor, int | float) and not isinstance(cursor, bool):
        cursor = str(cursor)
    return {
        "tools": found,
        **({"nextCursor": cursor} if isinstance(cursor, str) and cursor else {}),
        "ttlMs": _fresh_ms(said.get("ttlMs")),
        "cacheScope": "private",
        "resultType": "complete",
        "_meta": {LEFT_OUT: faults, MORE: left_out - len(faults)},
    }


def _fresh_ms(said: Any) -> int:
    if isinstance(said, bool) or not isinstance(said, int | float):
        return FRESH_MS
    if isinstance(said, float) and not math.isfinite(said):
        return FRESH_MS
    # Servers of the SDK write 0 where nobody has said anything; a list before each call would cost more than the call.
    return int(min(said, _LONGEST_MS)) if said >= 1 else FRESH_MS


def _read(said: Any, place: int, *, of_any_type: bool) -> dict[str, Any] | str:
    try:
        return _tool(said, place, of_any_type=of_any_type)
    except Exception as error:  # a hostile value can make any reading fail, and must cost this tool alone
        name = said.get("name") if isinstance(said, dict) else None
        shown = f".{one_line(name, 60)}" if isinstance(name, str) else f": entry {place} of its list"
        return f"{shown}: left out because it cannot be read ({type(error).__name__})"


def _tool(said: Any, place: int, *, of_any_type: bool) -> dict[str, Any] | str:
    if not isinstance(said, dict):
        return f": entry {place} of its list is left out because it is not an object"
    name = said.get("name")
    if not isinstance(name, str) or not name:
        shown = "missing" if "name" not in said else one_line(json.dumps(name, ensure_ascii=False), _SAID)
        return f": entry {place} of its list is left out because its name is {shown}, not a string"
    schema = input_schema(next((said[key] for key in _SCHEMAS if said.get(key) is not None), None))
    if isinstance(schema, str):
        return f".{one_line(name, 60)}: left out because it {schema}"
    answers = output_schema(said.get("outputSchema"), of_any_type=of_any_type)
    found: dict[str, Any] = {"name": name, "inputSchema": schema}
    for key in ("title", "description"):
        if (text := _words(said.get(key))) is not None:
            found[key] = text
    if answers is not None:
        found["outputSchema"] = answers
    if isinstance(annotations := said.get("annotations"), dict):
        hints = {key: _hint(annotations[key]) for key in _HINTS if key in annotations}
        found["annotations"] = {key: hint for key, hint in hints.items() if hint is not None}
    return found


def _words(said: Any) -> str | None:
    match said:
        case str():
            return said
        case bool() | None:
            return None
        case int() | float():
            return str(said)
        case list() if all(isinstance(line, str) for line in said):
            return "\n".join(said)
        case _:
            return None


def _hint(said: Any) -> bool | None:
    """Return what a hint says; a server that admits danger in another form admits it all the same."""
    match said:
        case bool():
            return said
        case 0 | 1:
            return bool(said)
        case str() if said.strip().lower() in {"true", "false", "yes", "no"}:
            return said.strip().lower() in {"true", "yes"}
        case _:
            return None
