"""Fill in the form of an answer, field by field; input that does not fit is reported where it is typed."""

import asyncio
from collections.abc import Sequence
from typing import Any

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.fields import FormField, answer_of, fields_of
from gateways.terminal.terminal import Terminal

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


def fields_from(form: Any, given: Sequence[str]) -> dict[tuple[str, ...], Any]:
    """Return what `name=value` flags say of the fields of a form; raises DecisionInvalid naming the field and the fix.

    An argument that is not named has its default.
    """
    from people.requests.entered import FixedValue

    fields: list[FormField] = [field for field in form.fields if field.kind != "nothing"]
    entered: dict[tuple[str, ...], str | FixedValue] = {
        field.path: FixedValue(field.default) for field in fields if field.default is not None
    }
    typed_in: set[tuple[str, ...]] = set()
    for text in given:
        name, equals, typed = text.partition("=")
        named = [field for field in fields if field.name == name]
        if not equals or not named:
            known = ", ".join(field.name for field in fields) or "none; give --answer"
            raise DecisionInvalid(f"--field: {text[:80]!r} is not a name=value of this form; its fields are {known}")
        if len(named) > 1:
            raise DecisionInvalid(f"--field: {len(named)} fields are called {name[:80]!r}; give --answer")
        if named[0].path in typed_in:
            raise DecisionInvalid(f"--field: {name[:80]!r} is given twice; give it once")
        typed_in.add(named[0].path)
        # As at a prompt, a string in quotes may hold line breaks; one that is empty leaves the field out.
        plain = named[0].kind != "text" or not typed
        entered[named[0].path] = typed if plain else FixedValue(named[0].parse(typed))
    return entered


async def _checked(field: FormField, typed: str, schema: dict[str, Any]) -> Any:
    """Return the value of what was typed; raises ValueError for what does not fit the field."""
    from toolbox.schema import compile_schema, fault_of

    value = field.parse(typed)
    around = {word: schema[word] for word in _DEFINITIONS if word in schema}
    check = await asyncio.to_thread(compile_schema, {**around, **field.schema})
    # Fields that cannot be checked here are checked where the answer is accepted.
    fault = None if isinstance(check, str) else await asyncio.to_thread(fault_of, check, value, root="it")
    if fault is not None and fault.startswith(("it: ", "it.", "it[")) and "the tool's schema" not in fault:
        raise ValueError(fault.removeprefix("it: "))
    return value
