"""The Python client: connect to Temporal, start runs, follow them, decide requests.

May import: backstay.approvals, backstay.authority, backstay.canonical, backstay.effects, backstay.errors,
backstay.frozen, backstay.redaction, backstay.requests, backstay.rooms, backstay.settings, backstay.shown,
backstay.stored_texts, backstay.task, backstay.tools, backstay.variables.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backstay.client.backstay import Backstay
    from backstay.client.connecting import connect
    from backstay.client.run import Run

__all__ = ["Backstay", "Run", "connect"]

_HOMES = {"Backstay": "backstay", "Run": "run", "connect": "connecting"}


def __getattr__(name: str) -> Any:
    # Code that only looks at what Temporal knows does not load what a run is made of.
    if name in _HOMES:
        return getattr(importlib.import_module(f"backstay.client.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
