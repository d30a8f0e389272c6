"""Read the folder of definitions, and check the input that is given to one."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from backstay.canonical import deeper_than, read_json
from backstay.errors import TaskInvalid
from backstay.plans.definition import PROVIDER, PlanDefinition
from backstay.shown import one_line
from backstay.yaml_text import DatesAsText, read_yaml
from toolbox.catalog.naming import function_name
from toolbox.schema import CheckBounds, compile_schema, fault_of, reference_fault

_ENDINGS = frozenset({".yaml", ".yml", ".json"})
_MOST_FILES = 1000
_MOST = 1 << 20
_DEEPEST = 60
_BOUNDS = CheckBounds(seconds=3.0, rules=float("inf"), faults=100)


@dataclass(frozen=True)
class DefinitionFolder:
    """Hold what a folder defines, and what is wrong in it."""

    folder: Path
    by_id: dict[str, PlanDefinition] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """The file of each definition."""
    faults: dict[str, str] = field(default_factory=dict)
    """What is wrong, by file."""

    @property
    def offered(self) -> dict[str, PlanDefinition]:
        """Return the definitions that models are offered, by the name of their function."""
        return {function_name(PROVIDER, name): kept for name, kept in self.by_id.items() if kept.offer}

    def named(self, name: str) -> PlanDefinition:
        """Return the definition with this id. Raises TaskInvalid naming those that there are."""
        if name in self.by_id:
            return self.by_id[name]
        known = ", ".join(sorted(self.by_id)) or "none"
        more = f"; not usable: {'; '.join(self.faults.values())}" if self.faults else ""
        raise TaskInvalid(f"definition: there is no {name[:80]!r} in {self.folder}; there are: {known}{more}")


def definition_files(folder: Path) -> list[Path]:
    """Return the files of a folder that may hold a definition each, in the order of their names."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in files if path.suffix in _ENDINGS and path.name[0] != "." and path.is_file()]


def read_definitions(folder: Path) -> DefinitionFolder:
    """Read every definition in a folder; a file that cannot be used is a fault, and hides no other."""
    found = DefinitionFolder(folder)
    wanted = definition_files(folder)
    for path in wanted[:_MOST_FILES]:
        try:
            definition = _read(path)
        except TaskInvalid as error:
            found.faults[path.name] = str(error)
            continue
        other = found.files.setdefault(definition.id, path.name)
        if other != path.name:
            found.faults[path.name] = (
                f"{path.name}: id: {definition.id!r} is also the id in {other}; change one of them"
            )
            continue
        found.by_id[definition.id] = definition
    return found


def input_fault(definition: PlanDefinition, given: dict[str, Any]) -> str | None:
    """Return what is wrong with the input for a definition in one line that does not quote it, or None."""
    validator = compile_schema(definition.input, called="the schema of input")
    return fault_of(validator, given, root="input", called="the schema of input", bounds=_BOUNDS)


def _read(path: Path) -> PlanDefinition:
    data = _data(path)
    definition = PlanDefinition.read(data, path.name)
    validator = compile_schema(definition.input, called="input")
    fault = validator if isinstance(validator, str) else None
    if fault is None and (lost := reference_fault(definition.input)) is not None:
        fault = f"input {lost}"
    if fault is not None:
        raise TaskInvalid(f"{path.name}: {fault}; write a JSON Schema")
    return definition


def _data(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST + 1)
        text = raw.decode()
        data = _plain(read_json(text) if path.suffix == ".json" else read_yaml(text, DatesAsText))
    except (OSError, UnicodeDecodeError) as error:
        raise TaskInvalid(f"{path.name}: cannot be read: {error}") from None
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise TaskInvalid(f"{path.name}: not valid YAML or JSON: {one_line(str(error), 300)}") from None
    if len(raw) > _MOST or data is None or deeper_than(data, _DEEPEST):
        raise TaskInvalid(
            f"{path.name}: is empty, nested deeper than {_DEEPEST} levels or longer than {_MOST} characters"
        )
    return data


def _plain(data: Any) -> Any:
    """Return YAML as JSON, or None when that would be too long: an alias may stand for the same part many times."""
    parts: list[str] = []
    written = 0
    for part in json.JSONEncoder(default=str, allow_nan=False).iterencode(data):
        parts.append(part)
        written += len(part)
        if written > _MOST:
            return None
    return json.loads("".join(parts))
