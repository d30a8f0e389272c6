"""How modules are imported in a jail: some are changed right after, and of asyncio only the needed parts come."""

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

Change = Callable[[ModuleType], None]


class ModuleChanges:
    """Change some modules right after they have been imported for the first time."""

    def __init__(self, changes: dict[str, Change]) -> None:
        """Change each named module when it is imported; one that is there already, now."""
        self._changes: dict[str, Change] = {}
        for name, change in changes.items():
            self.add(name, change)
        sys.meta_path.insert(0, self)  # pyright: ignore[reportArgumentType] - the old method find_module is not asked for

    def add(self, name: str, change: Change) -> None:
        """Change this module too."""
        if name in sys.modules:
            change(sys.modules[name])
        else:
            self._changes[name] = change

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the path gives, with a loader that also makes the change."""
        change = self._changes.pop(name, None)
        spec = PathFinder.find_spec(name, path, target) if change else None
        if change and spec and spec.loader:
            real: Any = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                real(module)
                change(module)

            spec.loader.exec_module = exec_module
        return spec


_PARTS = "exceptions coroutines events futures tasks locks queues taskgroups timeouts"
_LATER = {"run": "runners", "Runner": "runners", "to_thread": "threads"}


def import_asyncio() -> None:
    """Import the parts of asyncio that programs here use; the rest is imported when it is asked for."""
    spec = PathFinder.find_spec("asyncio")
    if spec is None or spec.loader is None:
        raise ImportError("asyncio is not in the image")
    package = ModuleType("asyncio", "The asyncio package, tracking PEP 3156.")
    vars(package).update(__spec__=spec, __path__=spec.submodule_search_locations, __file__=spec.origin)
    package.__package__, package.__loader__ = "asyncio", spec.loader
    sys.modules["asyncio"] = package
    absent = [name for name in _STAND_INS if name not in sys.modules]
    sys.modules.update({name: _stand_in(name) for name in absent})
    vars(sys.modules["concurrent"])["futures"] = sys.modules["concurrent.futures"]
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


def _stand_in(name: str) -> ModuleType:
    """Return a module that imports the real one when more is asked of it than what is known already."""
    module = ModuleType(name)

    def fetch(attribute: str) -> Any:
        if sys.modules.get(name) is module:
            raise AttributeError(f"{name}.{attribute} is asked for too early")
        return getattr(importlib.import_module(name), attribute)

    vars(module).update(_STAND_INS[name], __getattr__=fetch)
    return module


def _extract_stack(*given: Any, **named: Any) -> Any:
    return importlib.import_module("traceback").extract_stack(*given, **named)


_WAITS = ("FIRST_COMPLETED", "FIRST_EXCEPTION", "ALL_COMPLETED")
# The names that asyncio takes from these while it is imported; importing them is half of the time a jail needs to
# start.
_STAND_INS: dict[str, dict[str, Any]] = {
    "concurrent": {"__path__": []},
    "concurrent.futures": {name: name for name in _WAITS},
    "inspect": {},
    "linecache": {},
    "logging": {"DEBUG": 10},
    "socket": {"AF_UNSPEC": 0, "AI_PASSIVE": 1},
    "subprocess": {"PIPE": -1},
    "traceback": {"extract_stack": _extract_stack},
}
