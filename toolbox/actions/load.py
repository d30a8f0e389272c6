"""Load the functions and the shape that an entry of `actions` names."""

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from pydantic import TypeAdapter

from backstay.canonical import digest_of
from backstay.errors import ToolboxInvalid
from backstay.shown import message_line
from toolbox.actions.wrapper import Wrapper, wrappers_of
from toolbox.configuration.configuration import ActionEntry
from toolbox.configuration.shape import Shape
from toolbox.configuration.template import check

_BUNDLED = Path(__file__).with_name("bundled")
_SHAPES: TypeAdapter[dict[str, Shape]] = TypeAdapter(dict[str, Shape])


def load_actions(name: str, entry: ActionEntry, folder: Path) -> tuple[dict[str, Wrapper], Shape]:
    """Return the functions by name and the shape of what they call; paths begin in the folder.

    Raises ToolboxInvalid naming field, value and fix.
    """
    field = f"actions.{name}"
    chosen = entry.module or name
    bundled = chosen in bundled_modules()
    if not bundled and entry.module is None:
        known = ", ".join(bundled_modules())
        raise ToolboxInvalid(f"{field}: there are no bundled actions of this name (known: {known}); give `module`")
    wrappers = wrappers_of(
        _module(f"{field}.module", f"toolbox.actions.bundled.{chosen}" if bundled else chosen, folder)
    )
    if not wrappers:
        raise ToolboxInvalid(f"{field}.module: {chosen!r} defines no function with @action; add one")
    shape = entry.shape if isinstance(entry.shape, dict) else {}
    if isinstance(entry.shape, str) and bundled:
        shapes = bundled_shapes(chosen)
        if entry.shape not in shapes:
            raise ToolboxInvalid(
                f"{field}.shape: unknown {entry.shape!r} (known: {', '.join(shapes)}); or write it out"
            )
        shape = shapes[entry.shape]
    if entry.provider is None and (calling := [wrapper.name for wrapper in wrappers.values() if wrapper.calls]):
        raise ToolboxInvalid(f"{field}.provider: {calling[0]} calls tools; name the server that has them")
    _check_shape(f"{field}.shape", wrappers, shape, known_arguments=bundled)
    return wrappers, shape


@cache
def bundled_modules() -> tuple[str, ...]:
    """Return the names of the actions that come with the engine."""
    return tuple(sorted(path.stem for path in _BUNDLED.glob("*.json")))


@cache
def bundled_shapes(module: str) -> dict[str, Shape]:
    """Return the shapes of servers that are known for bundled actions."""
    return _SHAPES.validate_json((_BUNDLED / f"{module}.json").read_bytes(), strict=False)


def _module(field: str, named: str, folder: Path) -> ModuleType:
    try:
        if not named.endswith(".py"):
            return importlib.import_module(named)
        path = (folder / named).resolve()
        spec = importlib.util.spec_from_file_location(f"actions_{digest_of(str(path))[:16]}", path)
        assert spec is not None  # noqa: S101 - the name ends in .py
        assert spec.loader is not None  # noqa: S101 - the same
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module  # types are looked up there
        spec.loader.exec_module(module)
    except Exception as error:  # a module of the operator's may fail in any way
        reason = f"{type(error).__name__}: {message_line(str(error))}"
        raise ToolboxInvalid(f"{field}: {named!r} cannot be loaded: {reason}") from None
    return module


def _check_shape(field: str, wrappers: dict[str, Wrapper], shape: Shape, *, known_arguments: bool) -> None:
    called = {call: wrapper for wrapper in wrappers.values() for call in wrapper.calls}
    for call, shaped in shape.items():
        if call not in called:
            known = ", ".join(sorted(called)) or "none"
            raise ToolboxInvalid(f"{field}.{call}: no action calls this (known: {known})")
        names = frozenset(called[call].model.model_fields) if known_arguments else None
        if names is not None and (fault := check(shaped.arguments, names)):
            raise ToolboxInvalid(f"{field}.{call}.arguments: {fault}")
