"""Say what is wrong in toolbox.json: field, value and fix, and never a value that may be secret."""

import difflib
import json
from typing import Any

from toolbox.actions.shape import ShapedCall
from toolbox.configuration import ActionEntry, Configuration, ProviderEntry, ServerEntry, UserEntry
from toolbox.declaration import CallTemplate, Check, Declaration
from toolbox.strict import Strict

_HIDDEN = frozenset({"env", "headers", "args", "command", "url"})


def explain(fault: Any) -> str:
    """Return one line for one fault that pydantic found."""
    path = [str(part) for part in fault["loc"] if part != "[key]"]
    field = ".".join(path) or "the file"
    if fault["type"] == "extra_forbidden":
        return f"{field}: unknown field{_shown(path, fault)}; {_fix(path)}"
    if fault["type"] == "missing":
        return f"{field}: required field is missing; add it"
    if "[key]" in fault["loc"]:
        return f"{field}: not a usable provider name; use letters, digits, space, _ and -, at most 48"
    return f"{field}: {str(fault['msg']).removeprefix('Value error, ')}{_shown(path, fault)}"


def _shown(path: list[str], fault: Any) -> str:
    if _HIDDEN & set(path) or isinstance(fault.get("input"), dict | list):
        return ""
    shown = json.dumps(fault.get("input"), default=str, ensure_ascii=False)
    return f" (value {shown if len(shown) <= 80 else shown[:77] + '...'})"


def _fix(path: list[str]) -> str:
    model = _model_at(path[:-1])
    known = [field.alias or name for name, field in model.model_fields.items()]
    near = difflib.get_close_matches(path[-1], known, 1)
    return f"did you mean {near[0]!r}?" if near else f"remove it (known here: {', '.join(known)})"


def _model_at(path: list[str]) -> type[Strict]:
    match path:
        case ["mcpServers", _]:
            return ServerEntry
        case ["providers", _]:
            return ProviderEntry
        case ["providers", _, "tools", _]:
            return Declaration
        case ["providers", _, "tools", _, "verify"]:
            return Check
        case ["providers", _, "tools", _, _]:
            return CallTemplate
        case ["actions", _]:
            return ActionEntry
        case ["actions", _, "shape", *_]:
            return ShapedCall
        case ["users", _]:
            return UserEntry
        case _:
            return Configuration
