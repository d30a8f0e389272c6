"""Import of asyncio only what programs without network and processes use; the rest comes when it is asked for."""

import importlib
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

_PARTS = "exceptions coroutines events futures tasks locks queues taskgroups timeouts"
_LATER = {"run": "runners", "Runner": "runners", "to_thread": "threads"}
# What asyncio.events takes from them are a few constants, and importing them is half of the time a jail needs to start.
_HEAVY = {"socket": {"AF_UNSPEC": 0, "AI_PASSIVE": 1}, "subprocess": {"PIPE": -1}}


def import_asyncio() -> ModuleType:
    """Put a package in the place of asyncio that holds its own modules and fetches the heavy ones late."""
    spec = PathFinder.find_spec("asyncio")
    if spec is None or spec.loader is None:
        raise ImportError("asyncio is not in the image")
    package = ModuleType("asyncio", "The asyncio package, tracking PEP 3156.")
    vars(package).update(__spec__=spec, __path__=spec.submodule_search_locations, __file__=spec.origin)
    package.__package__, package.__loader__ = "asyncio", spec.loader
    sys.modules["asyncio"] = package
    absent = [name for name in _HEAVY if name not in sys.modules]
    for name in absent:
        sys.modules[name] = stand_in = ModuleType(name)
        vars(stand_in).update(_HEAVY[name])
    for part in _PARTS.split():
        module = importlib.import_module(f"asyncio.{part}")
        vars(package).update({name: vars(module)[name] for name in module.__all__})
    for name in absent:
        del sys.modules[name]
    real: Any = spec.loader

    def fetch(name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module 'asyncio' has no attribute {name!r}")
        if name in _LATER:
            found = vars(importlib.import_module(f"asyncio.{_LATER[name]}"))[name]
            vars(package)[name] = found
            return found
        del vars(package)["__getattr__"]
        real.exec_module(package)
        return getattr(package, name)

    vars(package)["__getattr__"] = fetch
    return package
