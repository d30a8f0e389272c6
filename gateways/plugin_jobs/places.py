"""Find the operator's files without loading anything that is not of the standard library."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from system.folders import is_plugin

_TOOLBOX = "toolbox.json"
_PLUGINS = "plugins"
_HOME = ".backstay"
_NAMED_BY = ("BACKSTAY_TOOLBOX", "BACKSTAY_HOME")


class PlaceInvalid(Exception):
    """The operator's files cannot be read; the message says why, and what to do."""


class DaemonPaths(NamedTuple):
    """Name the folder that the daemon works in, and the files that it reads and writes there."""

    folder: Path
    toolbox: Path
    """It need not exist: then the folder `plugins` beside it is all that is known."""
    home: Path

    def plugins(self) -> dict[str, Path]:
        """Return the folders of the plugins by name: a folder that holds a cli.py is one. Raises PlaceInvalid."""
        named = self._named()
        place = None if named is None else self.toolbox.parent / named
        try:
            found = sorted(place.iterdir()) if place is not None and place.is_dir() else []
        except OSError as error:
            raise PlaceInvalid(f"plugins: {place} cannot be read: {error.strerror}") from None
        return {path.name: path for path in found if is_plugin(path)}

    def unused(self) -> Path | None:
        """Return the folder `plugins` that the toolbox.json beside it does not name; None where there is none such.

        Raises PlaceInvalid.
        """
        beside = self.toolbox.parent / _PLUGINS
        return beside if self._named() is None and beside.is_dir() else None

    def toolbox_text(self) -> str:
        """Return what is in toolbox.json; nothing without one. Raises PlaceInvalid."""
        try:
            return self.toolbox.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise PlaceInvalid(f"{self.toolbox}: cannot be read: {error}") from None

    def _named(self) -> str | None:
        text = self.toolbox_text()
        if not text:
            return _PLUGINS
        try:
            found = _parsed(text)
        except (ValueError, RecursionError) as error:
            raise PlaceInvalid(f"{self.toolbox}: no valid JSON: {error}") from None
        named = found.get("plugins") if isinstance(found, dict) else None
        named = named.get("folder") if isinstance(named, dict) else named
        return named if isinstance(named, str) and named else None


def find_place(called: Path | None, variables: Mapping[str, str] | None = None) -> DaemonPaths:
    """Return where the operator's files are.

    BACKSTAY_TOOLBOX names the file; else it is looked for beside the entry file as it was called, which may be a
    symlink, and then in the current folder.
    """
    known = os.environ if variables is None else variables  # noqa: TID251 - backstay.variables would load a reader of .env files
    if named := known.get("BACKSTAY_TOOLBOX"):
        toolbox = Path(named).absolute()
    else:
        beside = None if called is None else called.parent
        is_there = beside is not None and ((beside / _TOOLBOX).is_file() or (beside / _PLUGINS).is_dir())
        toolbox = (beside if beside is not None and is_there else Path.cwd()) / _TOOLBOX
    home = known.get("BACKSTAY_HOME")
    return DaemonPaths(toolbox.parent, toolbox, toolbox.parent / _HOME if not home else Path(home).absolute())


def keep_named_places() -> None:
    """Make the variables that name the operator's files absolute, so that they hold in another folder, too."""
    for name in _NAMED_BY:
        if given := os.environ.get(name):  # noqa: TID251 - backstay.variables would load a reader of .env files
            os.environ[name] = str(Path(given).absolute())  # noqa: TID251 - the same


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        from toolbox.configuration.commented import read  # noqa: PLC0415 - only a file with comments needs it

        return read(text)
