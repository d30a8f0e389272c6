"""The value that a task wants under its output schema: how the model is asked for it, and what is wrong with one."""

import asyncio
import json
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Any

from activities.model.functions import FINISH, function
from backstay.canonical import canonical
from backstay.digests.broken_up import put_together
from backstay.errors import TaskInvalid
from backstay.redaction.redactor import Redactor
from store.blobs.shown import ShownBlobStore
from toolbox.manifest.builder import masked
from toolbox.schema import CheckBounds, compile_schema, fault_of, reference_fault

CACHED = 64
NAME = "output_schema"
ROOT = "output"
_DEFINITIONS = ("$defs", "definitions")
_AT = "#/properties/output"
_FENCE = "```"
_BOUNDS = CheckBounds(seconds=3.0, rules=float("inf"), faults=100)
"""A value of a megabyte needs more rules than the arguments of a tool, and may be wrong in as many places."""


@dataclass(frozen=True)
class WantedOutput:
    """Hold the schema of the value that `finish` takes."""

    schema: dict[str, Any]
    validator: Any = field(repr=False)

    @classmethod
    def of(cls, schema: dict[str, Any]) -> "WantedOutput":
        """Prepare the checks of a schema; that may take seconds."""
        return cls(schema, compile_schema(schema, called=NAME))

    async def fault(self, value: Any) -> str | None:
        """Return what is wrong with a value in one line that does not quote it, or None."""
        return await asyncio.to_thread(self._fault, value)

    def _fault(self, value: Any) -> str | None:
        return fault_of(self.validator, value, root=ROOT, called=NAME, bounds=_BOUNDS)

    def function(self) -> dict[str, Any]:
        """Return the function `finish` as the model is offered it: the schema is the one of its `output`."""
        definitions = {name: _moved(self.schema[name]) for name in _DEFINITIONS if name in self.schema}
        rest = {key: value for key, value in self.schema.items() if key not in {*_DEFINITIONS, "$schema"}}
        properties = {
            "summary": {"type": "string"},
            "output": _moved(rest),
            "success": {"type": "boolean"},
        }
        parameters = {"type": "object", "properties": properties, "required": ["summary", "output"], **definitions}
        description = (
            "End the task. `output` is the value that the task wants, and is checked against its schema; "
            "leave it out only with `success` false."
        )
        return function(FINISH, description, parameters)


@dataclass
class WantedOutputs:
    """Load what runs want; models looked at lately stay prepared."""

    blobs: ShownBlobStore
    recent: OrderedDict[tuple[str, str], WantedOutput] = field(default_factory=OrderedDict)

    async def of(self, run: str, ref: str) -> WantedOutput | None:
        """Return what a run wants; None when it has no output schema."""
        if not ref:
            return None
        wanted = self.recent.pop((run, ref), None)
        if wanted is None:
            wanted = await asyncio.to_thread(WantedOutput.of, await self.blobs.of(run).get_json(ref))
        self.recent[run, ref] = wanted
        while len(self.recent) > CACHED:
            self.recent.popitem(last=False)
        return wanted


def require_usable(schema: dict[str, Any], redactor: Redactor) -> None:
    """Raise TaskInvalid for a schema that no value could be checked against; it may take seconds."""
    wanted = WantedOutput.of(schema)
    fault = wanted.validator if isinstance(wanted.validator, str) else None
    if fault is None and (lost := reference_fault(schema)) is not None:
        fault = f"{NAME} {lost}"
    if fault is None and (probed := fault_of(wanted.validator, None, root=ROOT, called=NAME)) is not None:
        # Any value shows a schema that never comes to an end; that null does not fit is not a fault of the schema.
        fault = f"{NAME} refers to itself without an end" if probed.endswith("takes too long to check") else None
    if fault is None and masked(schema, redactor) != schema:
        fault = f"{NAME} holds a secret, which no model may be shown; take it out"
    if fault is not None:
        raise TaskInvalid(f"{NAME}: {fault.removeprefix(NAME).lstrip()}")


def value_in(text: str) -> Any:
    """Return the JSON value that a string is, or that is in its only fenced block; raises ValueError."""
    stripped = text.strip()
    if stripped.count(_FENCE) == 2:
        block = stripped.split(_FENCE)[1]
        # The language is behind the fence.
        stripped = block.partition("\n")[2] if "\n" in block else block
    try:
        value = strict_json(stripped)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return put_together(value)


def strict_json(text: str, *, breaks: bool = False) -> Any:
    """Return a JSON value; raises ValueError for NaN, lone surrogates, and names that an object holds twice.

    `breaks`: whether texts may hold line breaks and tabs as they are, which JSON wants written out.
    """
    value = json.loads(text, object_pairs_hook=_object, strict=not breaks)
    canonical(value).encode()
    return value


class NamedTwice(ValueError):
    """An object holds a name twice, and nobody knows which value is meant."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise NamedTwice(f"the name {twice[:60]!r} stands twice in one object; give it once")
    return found


def _moved(schema: Any) -> Any:
    """Return a schema whose references are right where it is a part of the function's parameters."""
    match schema:
        case dict():
            return {
                key: _target(value) if key == "$ref" and isinstance(value, str) else _moved(value)
                for key, value in schema.items()
            }
        case list():
            return [_moved(item) for item in schema]
        case _:
            return schema


def _target(reference: str) -> str:
    if reference == "#" or (
        reference.startswith("#/") and not reference.startswith(tuple(f"#/{name}/" for name in _DEFINITIONS))
    ):
        return f"{_AT}{reference[1:]}"
    return reference
