"""backstay: durable tool-using agents that survive crashes, ask first, and can be undone.

May import: no other room.
"""

import ast
import importlib
from pathlib import Path
from typing import Any

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_HOMES = {
    name.name: str(found.module) for found in _STUB.body if isinstance(found, ast.ImportFrom) for name in found.names
}
"""The module of each name, as the file for type checkers says it."""


def __getattr__(name: str) -> Any:
    # Names are loaded when they are asked for: a program that only needs the nouns does not load a Temporal client.
    if name == "__all__":
        return sorted(_HOMES)
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
