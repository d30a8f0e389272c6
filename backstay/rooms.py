"""Import the engine's own packages from where they are: beside this one in a checkout, inside it when installed."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from backstay.errors import SettingsInvalid

_PACKAGE = Path(__file__).resolve().parent
ROOMS = ("activities", "gateways", "opening", "people", "sandbox", "store", "system", "toolbox", "workflows")


class _OpenRooms(MetaPathFinder):
    """Find the packages that were opened, and nothing else: a program's own modules keep their names."""

    def __init__(self) -> None:
        self.names = set[str]()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(fullname, [str(house())], target) if fullname in self.names else None


_OPEN = _OpenRooms()


def house() -> Path:
    """Return the folder that holds worker.py and its packages: `_app` in an installed package, else the checkout."""
    installed = _PACKAGE / "_app"
    return installed if installed.is_dir() else _PACKAGE.parent


def open_house(*names: str) -> Path:
    """Have these packages found, and no others; raises SettingsInvalid when a foreign module of a name was imported."""
    place = house()
    for name in names:
        known = sys.modules.get(name)
        if known is not None and place not in _home_of(known).parents:
            raise SettingsInvalid(
                f"{name!r} was imported from {_home_of(known)}, not from {place}; import backstay.library first, "
                "or uninstall the package that provides it"
            )
    _OPEN.names.update(names)
    # A folder of one of the names where the program was started must not be in front of ours.
    if sys.meta_path[:1] != [_OPEN]:
        sys.meta_path.insert(0, _OPEN)
    return place


def _home_of(module: ModuleType) -> Path:
    places = [module.__file__] if module.__file__ else [*getattr(module, "__path__", ["?"])]
    return Path(str(places[0])).resolve()
