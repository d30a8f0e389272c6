"""Fill in the form of an answer, field by field; what does not fit is said where it is typed."""

import asyncio
from collections.abc import Sequence
from typing import Any

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.deciding import DecisionInvalid
from backstay.approvals.fields import FormField, answer_of, fields_of, named
from backstay.cli.terminal import Terminal
from backstay.rooms import room

_STOP = "."
_DEFINITIONS = ("$defs", "definitions")


async def fill_in(terminal: Terminal, schema: dict[str, Any]) -> Any:
    """Ask for each field in turn and return the answer; None when the person stops."""
    terminal.say(f"one field after the other; Enter takes the default or leaves out, a single {_STOP} stops", "dim")
    values: dict[tuple[str, ...], Any] = {}
    for field in fields_of(schema):
        if field.kind == "nothing":
            values[field.path] = None
            continue
        stopped, given = await _ask(terminal, field, schema)
        if stopped:
            return None
        values |= given
    return answer_of(values)


async def _ask(terminal: Terminal, field: FormField, schema: dict[str, Any]) -> tuple[bool, dict[tuple[str, ...], Any]]:
    """Ask until a field fits; return whether the person stops, and the value by its path, if there is one."""
    notes: list[tuple[str, str]] = []
    while True:
        typed = await terminal.ask(f"  {field.line()}:", notes)
        notes = []
        if typed is None or typed == _STOP:
            return True, {}
        if typed:
            try:
                return False, {field.path: await _checked(field, typed, schema)}
            except ValueError as error:
                notes = [(f"  {field.name}: {error}", "red")]
        elif field.default is not None:
            return False, {field.path: field.default}
        elif not field.required:
            return False, {}
        else:
            notes = [(f"  {field.name}: must be given", "red")]


async def answer_from(request: ApprovalRequest, given: Sequence[str]) -> Any:
    """Return the answer that consists of `name=value` texts; raises DecisionInvalid naming the field and the fix."""
    if request.answer_schema is None:
        raise DecisionInvalid(f"--field: {request.id} has no fields; give --answer")
    schema = request.answer_schema
    fields = [field for field in fields_of(schema) if field.kind != "nothing"]
    values: dict[tuple[str, ...], Any] = {f.path: f.default for f in fields if f.default is not None}
    values |= {field.path: None for field in fields_of(schema) if field.kind == "nothing"}
    for text in given:
        name, equals, typed = text.partition("=")
        field = named(fields, name)
        if not equals or field is None:
            known = ", ".join(field.name for field in fields)
            raise DecisionInvalid(f"--field: {text[:80]!r} is no name=value of this form; its fields are {known}")
        try:
            values[field.path] = await _checked(field, typed, schema)
        except ValueError as error:
            raise DecisionInvalid(f"--field {field.name}: {error}") from None
    missing = [field.name for field in fields if field.required and field.path not in values]
    if missing:
        raise DecisionInvalid(f"--field: {', '.join(missing)} must be given, such as --field {missing[0]}=VALUE")
    return answer_of(values)


async def _checked(field: FormField, typed: str, schema: dict[str, Any]) -> Any:
    """Return the value of what was typed; raises ValueError for what does not fit the field."""
    value = field.parse(typed)
    schemas = room("toolbox.schema")
    around = {word: schema[word] for word in _DEFINITIONS if word in schema}
    check = await asyncio.to_thread(schemas.compile_schema, {**around, **field.schema})
    # What cannot be checked here is checked where the answer is accepted.
    fault = None if isinstance(check, str) else await asyncio.to_thread(schemas.fault_of, check, value, root="it")
    if fault is not None and fault.startswith(("it: ", "it.", "it[")) and "the tool's schema" not in fault:
        raise ValueError(fault.removeprefix("it: "))
    return value
