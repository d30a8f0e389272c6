"""Change a module right after it has been imported for the first time."""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

Change = Callable[[ModuleType], None]


class AfterImport:
    """Stand first among the finders and give the loaders of some modules one more thing to do."""

    def __init__(self, changes: dict[str, Change]) -> None:
        """Change each named module when it comes; those that are there already, now."""
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
