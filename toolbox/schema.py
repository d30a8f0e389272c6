"""Check arguments against a stranger's JSON Schema: bounded, without fetching anything, in one line."""

import json
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

_MATCH_STEPS = 10**7


def matches(pattern: str, text: str) -> bool | None:
    """Return whether the pattern is found in the text; None when trying could take too long or it is no pattern."""
    variable = _variable_repeats(pattern)
    if variable is None or max(len(text), 1) ** (variable + 1) > _MATCH_STEPS:
        return None
    try:
        return re.search(pattern, text) is not None
    except (re.error, RecursionError, OverflowError):
        return None


@lru_cache(maxsize=1024)
def _variable_repeats(pattern: str) -> int | None:
    """Count the repeats whose length is open; None when one holds another choice, which can take for ever."""
    if len(pattern) > 1000:
        return None
    try:
        return _count(_parse(pattern), inside=False)
    except (re.error, RecursionError, OverflowError, _Nested):
        return None


class _Nested(Exception):
    """A choice lies within a repeat."""


def _parse(pattern: str) -> Any:
    from re import _parser  # type: ignore[attr-defined]  # noqa: PLC0415

    return _parser.parse(pattern)


def _count(parsed: Any, *, inside: bool) -> int:
    total = 0
    for operator, detail in parsed:
        match str(operator):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, body = detail
                if inside and high != low:
                    raise _Nested
                total += (high != low) + _count(body, inside=inside or int(high) > 1)
            case "BRANCH":
                if inside:
                    raise _Nested
                total += sum(_count(branch, inside=inside) for branch in detail[1])
            case "SUBPATTERN" | "ATOMIC_GROUP":
                total += _count(detail[-1] if isinstance(detail, tuple) else detail, inside=inside)
            case "GROUPREF" | "GROUPREF_EXISTS" | "ASSERT" | "ASSERT_NOT":
                raise _Nested
            case _:
                pass
    return total


_STEPS = 20_000
_used: ContextVar[list[int]] = ContextVar("schema_steps")
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


class _TooLong(Exception):
    """The schema needs more steps than one check may take."""


def compile_schema(schema: Any) -> Any:
    """Return a validator for the schema, or one line that says why the schema cannot be used."""
    if not isinstance(schema, dict):
        return "the tool's schema is no object"
    try:
        dialect = validator_for(schema, default=Draft202012Validator)
        schema = _of_one_dialect(schema)
        dialect.check_schema(schema)
    except SchemaError as error:
        return f"the tool's schema is not valid at {_path(error.absolute_path, 'schema')}"
    except Exception:  # a stranger's schema may break the check in ways nobody listed
        return "the tool's schema cannot be used"
    return _bounded(dialect)(schema, registry=Registry())


def fault_of(validator: Any, arguments: Any) -> str | None:
    """Return what is wrong with the arguments in one line without quoting a value, or None."""
    with_steps = _used.set([0])
    try:
        error = best_match(validator.iter_errors(arguments))
    except (RecursionError, _TooLong):
        return "arguments: the tool's schema takes too long to check"
    except Unresolvable:
        return "arguments: the tool's schema refers to something outside itself, which is never fetched"
    except Exception as broken:  # a stranger's schema may break the validator in ways nobody listed
        return f"arguments: the tool's schema cannot be used ({type(broken).__name__})"
    finally:
        _used.reset(with_steps)
    return None if error is None else " ".join(_explain(error).split())[:500]


def _of_one_dialect(schema: Any) -> Any:
    """Return the schema without inner dialects: each would bring back the unbounded rules."""
    match schema:
        case dict():
            kept = {key: value for key, value in schema.items() if not (key == "$schema" and isinstance(value, str))}
            return {key: _of_one_dialect(value) for key, value in kept.items()}
        case list():
            return [_of_one_dialect(value) for value in schema]
        case _:
            return schema


@lru_cache(maxsize=32)
def _bounded(validator: Any) -> Any:
    rules = {name: _counted(rule) for name, rule in validator.VALIDATORS.items()}
    return extend(validator, {**rules, "pattern": _pattern, "patternProperties": _pattern_properties})


def _counted(rule: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        steps = _used.get()
        steps[0] += 1
        if steps[0] > _STEPS:
            raise _TooLong
        yield from rule(validator, value, instance, schema) or ()

    return check


def _pattern(_validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and isinstance(pattern, str) and matches(pattern, instance) is False:
        yield ValidationError("pattern")


def _pattern_properties(validator: Any, rules: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, rule in rules.items():
        for key, value in instance.items():
            if matches(pattern, key):
                yield from validator.descend(value, rule, path=key, schema_path=pattern)


def _explain(error: Any) -> str:
    where = _path(error.absolute_path, "arguments")
    rule, expected, given = str(error.validator), error.validator_value, error.instance
    match rule:
        case "required" if isinstance(given, dict):
            missing = [name for name in expected if name not in given]
            return f"{where}: {', '.join(map(repr, missing[:5]))} is required; add it"
        case "additionalProperties" | "unevaluatedProperties" if isinstance(given, dict):
            known = list(error.schema.get("properties", {})) if isinstance(error.schema, dict) else []
            strange = [name for name in given if name not in known]
            return (
                f"{where}: unknown field {', '.join(map(repr, strange[:5]))}; known: {', '.join(known[:20]) or 'none'}"
            )
        case "type":
            return f"{where}: must be {_clip(expected)}, not {_type(given)}"
        case "enum" | "const":
            return f"{where}: must be {'one of ' if rule == 'enum' else ''}{_clip(expected)}"
        case _:
            return f"{where}: does not fit {rule} {_clip(expected)} ({_type(given)} given)"


def _path(parts: Any, root: str) -> str:
    return "".join([root, *(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)])


def _type(value: Any) -> str:
    return "null" if value is None else _TYPES.get(type(value), type(value).__name__)


def _clip(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 160 else text[:157] + "..."
