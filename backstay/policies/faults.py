"""Say what is wrong with a policy as it was written, by field and fix."""

import difflib
from collections.abc import Callable, Sequence
from typing import Any

from backstay.shown import one_line

_SHOWN = 80


def explain(fault: Any, fields_at: Callable[[Sequence[int | str]], list[str]]) -> str:
    """Return one line for one fault that pydantic found; `fields_at` names what may be written at a place."""
    path = fault["loc"]
    field = one_line(".".join(map(str, path)), 200) or "Policy"
    value = repr(fault.get("input"))
    shown = value if len(value) <= _SHOWN else value[: _SHOWN - 3] + "..."
    match fault["type"]:
        case "extra_forbidden":
            known = fields_at(path[:-1])
            near = difflib.get_close_matches(str(path[-1]), known, 1)
            if near:
                return f"{field}: unknown field; did you mean {near[0]!r}?"
            return f"{field}: unknown field (value {shown}); remove it or correct its name (known: {', '.join(known)})"
        case "missing":
            return f"{field}: required field is missing; add it"
        case _:
            return f"{field}: {fault['msg'].replace('Value error, ', '')} (value {shown})"
