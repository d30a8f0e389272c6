"""Check values against JSON Schemas that others wrote: in bounded time, without fetching anything.

A thread cannot be ended from outside, so every check ends itself: each rule asks how much processor time is spent, and
no single rule can take long. Run checks off the event loop all the same.
"""

import json
import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

import re2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend, validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from backstay.canonical import key_of

_CHARACTERS = 256 * 1024
_VALUES = 20_000
_DEPTH = 64
_COMPILE_S = 5.0
"""Processor time for looking at a schema before it is first used."""
_PATTERN = 1000
"""How long a pattern may be: RE2 takes up to half a millisecond for a character of the worst ones."""
_PATTERN_STEPS = 10**8
"""RE2 takes at most one step per byte and instruction: about a second for all of them."""
_COMPILING = 100
"""Compiling an instruction takes about as long as running it on this many bytes."""
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\.", re.DOTALL)
_OTHER_SPACE = re.compile(r"[^\S \t\n\r\f]")
_STEP_S = 0.05
"""What takes longer between two steps, such as a search of a pattern, has a bound of its own."""
_LOOKED_AT = 2000
"""How many parts of a schema are looked at for one that bears a name."""
_TOOLS = "the tool's schema"
_VALUES_OF_A_SCHEMA = ("const", "enum", "default", "examples")
"""A value under these is not a schema."""
_OF_NAMES = frozenset({"required", "additionalProperties", "unevaluatedProperties"})
"""Rules for the names of fields."""
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


class CheckBounds(NamedTuple):
    """Bound the check of one value."""

    seconds: float
    """Processor time."""
    rules: float
    """How many rules are applied."""
    faults: int | None = None
    """How many are looked at to find the one that says most; None for all."""


_BOUNDS = CheckBounds(seconds=1.0, rules=20_000)


class _TooLong(Exception):
    """The schema needs more steps or more time than one check may take."""


@dataclass(slots=True)
class _Spent:
    seconds_left: float
    """How much of this thread's processor time is left."""
    rules_left: float
    pattern_steps: int = 0
    last_step: float = field(default_factory=time.thread_time)

    def step(self) -> None:
        """Raise _TooLong when the time is used up; every loop over what strangers wrote calls this.

        To this thread's time belong garbage collections and, on some machines, pauses of the host. Each falls into
        one step, so no step counts for more than `_STEP_S`.
        """
        now = time.thread_time()
        self.seconds_left -= min(now - self.last_step, _STEP_S)
        self.last_step = now
        if self.seconds_left < 0:
            raise _TooLong


_spent: ContextVar[_Spent] = ContextVar("schema_steps")


@contextmanager
def _spending(seconds: float, rules: float) -> Generator[None]:
    token = _spent.set(_Spent(seconds, rules))
    try:
        yield
    finally:
        _spent.reset(token)


_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.never_capture = True
_OPTIONS.max_mem = 1 << 20


def _found(pattern: str, text: str) -> bool | None:
    """Return whether the pattern is found in the text, as ECMA-262 reads it; None when that cannot be decided here.

    RE2 refuses lookarounds, back references, repeats over 1,000, and whatever needs more memory than the options allow.
    """
    spent = _spent.get()
    spent.step()
    if len(pattern) > _PATTERN:
        return None
    if r"\s" in pattern and _OTHER_SPACE.search(text):
        return None  # for ECMA-262 `\s` has more characters than for RE2
    try:
        size = len(text.encode())
        # ECMA-262 writes a code point as \uXXXX, RE2 as \x{XXXX}.
        escaped = _ESCAPE.sub(lambda found: f"\\x{{{found[1]}}}" if found[1] else found[0], pattern)
        compiled = re2.compile(escaped, _OPTIONS)
    except (re2.error, UnicodeEncodeError):
        return None
    spent.pattern_steps += compiled.programsize * (size + _COMPILING)
    return None if spent.pattern_steps > _PATTERN_STEPS else compiled.search(text) is not None


def fits_pattern(pattern: str, text: str) -> bool | None:
    """Return whether a pattern of a schema is found in a string; None when that cannot be decided here."""
    with _spending(_BOUNDS.seconds, _BOUNDS.rules):
        try:
            return _found(pattern, text)
        except _TooLong:
            return None


def too_large(schema: Any) -> str | None:
    """Return which bound the schema passes, in words that follow "its schema", or None."""
    characters = values = 0
    level = [schema]
    for _ in range(_DEPTH):
        below: list[Any] = []
        for value in level:
            values += 1
            if isinstance(value, dict):
                characters += sum(map(len, value))
                below += value.values()
            elif isinstance(value, list):
                below += value
            else:
                characters += len(value) if isinstance(value, str) else 8
        if characters > _CHARACTERS:
            return f"is longer than {_CHARACTERS} characters"
        if values + len(below) > _VALUES:
            return f"holds more than {_VALUES} values"
        if not below:
            return None
        level = below
    return f"is nested deeper than {_DEPTH} levels"


def compile_schema(schema: Any, *, called: str = _TOOLS, of_a_server: bool = False) -> Any:
    """Return a validator for the schema, or one line that says why the schema cannot be used.

    `called`: what that line calls the schema. `of_a_server`: it says what a server takes, and is read as servers mean
    theirs: what has a default may be missing whatever is required, what is `nullable` or null by default may be null,
    and of the branches of `oneOf` several may fit.
    """
    if not isinstance(schema, dict):
        return f"{called} is not an object"
    if (reason := too_large(schema)) is not None:
        return f"{called} {reason}"
    try:
        dialect: Any = validator_for(schema, default=Draft202012Validator)
        schema = without_key(schema, "$schema")  # an inner dialect would bring back the rules without bounds
        with _spending(_COMPILE_S, float("inf")):
            error = best_match(_bounded_metaschema(dialect).iter_errors(schema))
        bounded = _bounded(dialect, patterned="patternProperties" in json.dumps(schema), of_a_server=of_a_server)
    except _TooLong:
        return f"{called} takes too long to look at"
    except Exception:  # an untrusted schema may break the check in unknown ways
        return f"{called} cannot be used"
    if error is not None:
        return f"{called} is not valid at {_path(error.absolute_path, 'schema')}"
    return bounded(schema, registry=Registry())


def fault_of(
    validator: Any,
    given: Any,
    *,
    root: str = "arguments",
    called: str = _TOOLS,
    bounds: CheckBounds = _BOUNDS,
    left_to_the_server: bool = False,
    unknown: Callable[[Any], bool] = lambda _: False,
) -> str | None:
    """Return what is wrong with a value in one line without quoting it, or None.

    `validator` is what `compile_schema` returned: where that is why the schema cannot be used, it is the answer.
    `root` and `called`: what the line calls the value and the schema. `left_to_the_server`: a schema that refers to
    what is nowhere, or breaks the check, finds no fault. `unknown`: of a part that holds what is not known, only names
    can be wrong.
    """
    if isinstance(validator, str):
        return validator
    try:
        with _spending(bounds.seconds, bounds.rules):
            faults: Iterator[Any] = validator.iter_errors(given)
            known = (fault for fault in faults if fault.validator in _OF_NAMES or not unknown(fault.instance))
            error = best_match(islice(known, bounds.faults))
    except (RecursionError, _TooLong):
        return f"{root}: {called} takes too long to check"
    except Unresolvable:
        if left_to_the_server:
            return None
        return f"{root}: {called} refers to something outside itself, which is never fetched"
    except Exception as broken:  # an untrusted schema may break the validator in unknown ways
        if left_to_the_server:
            return None
        return f"{root}: {called} cannot be used ({type(broken).__name__})"
    return None if error is None else " ".join(_explain(error, root).split())[:500]


def reference_fault(schema: dict[str, Any]) -> str | None:
    """Return which reference of a schema leads nowhere, in words that follow the schema's name, or None."""
    whole = Resource.from_contents(without_key(schema, "$schema"), default_specification=DRAFT202012)
    base = whole.id() or ""
    resolver = Registry().with_resource(base, whole).crawl().resolver(base)
    for reference in references_of(schema):
        try:
            resolver.lookup(reference)
        except Exception:  # an untrusted schema may break the look-up in unknown ways
            return f"refers to {_clip(reference)!r}, which is not in it; nothing is fetched"
    return None


def references_of(schema: Any) -> Iterator[str]:
    """Yield what the schema refers to, wherever a schema can be in it."""
    waiting = [schema]
    while waiting:
        match waiting.pop():
            case dict() as known:
                if isinstance(reference := known.get("$ref"), str):
                    yield reference
                waiting += [value for key, value in known.items() if key not in _VALUES_OF_A_SCHEMA]
            case list() as several:
                waiting += several
            case _:
                pass


def referred(reference: Any, root: Any) -> Any:
    """Return what a reference within a schema names, by its place or by a name of its own; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    if len(reference) > 1 and not reference.startswith("#/"):
        return _anchored(reference[1:], root)
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        key = key_of(unquote(step))
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _anchored(name: str, root: Any) -> Any:
    waiting: list[Any] = [root]
    for _ in range(_LOOKED_AT):
        if not waiting:
            return None
        part = waiting.pop(0)
        if isinstance(part, dict):
            if name in (part.get("$anchor"), part.get("$dynamicAnchor")) or part.get("$id") == f"#{name}":
                return part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return None


def misfits(validator: Any, value: Any) -> bool:
    """Return whether a value is known not to fit; a server's answer may be too large to find out."""
    if isinstance(validator, str):
        return False
    try:
        with _spending(_BOUNDS.seconds, float("inf")):
            return next(validator.iter_errors(value), None) is not None
    except Exception:  # an untrusted schema may break the validator in unknown ways
        return False


def without_key(schema: Any, name: str) -> Any:
    """Return the schema without the texts that are under this key, at any depth; properties keep their names."""
    match schema:
        case dict():
            kept = {key: value for key, value in schema.items() if not (key == name and isinstance(value, str))}
            return {key: without_key(value, name) for key, value in kept.items()}
        case list():
            return [without_key(item, name) for item in schema]
        case _:
            return schema


_LEFT_TO_THE_SERVER = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef")
"""These walk through the whole schema by themselves, where nothing counts."""


@lru_cache(maxsize=32)
def _bounded(dialect: Any, *, patterned: bool, of_a_server: bool) -> Any:
    """Return the dialect with every rule counted and every pattern left to RE2 instead of Python's `re`."""
    rules = _replaced(dialect)
    if patterned:
        rules["additionalProperties"] = partial(_additional_properties, rules["additionalProperties"])
    rules |= dict.fromkeys(_LEFT_TO_THE_SERVER, lambda *_: ())
    if of_a_server:
        rules["required"] = _required
        if "oneOf" in rules:
            # Branches of many servers overlap; which of them is meant is the server's to say.
            rules["oneOf"] = rules["anyOf"]
    return _extended(dialect, rules, of_a_server=of_a_server)


@lru_cache(maxsize=32)
def _bounded_metaschema(dialect: Any) -> Any:
    """Return what checks schemas of a dialect; the library's own check has rules that take quadratic time."""
    return _extended(dialect, _replaced(dialect))(dialect.META_SCHEMA)


def _extended(dialect: Any, rules: dict[str, Any], *, of_a_server: bool = False) -> Any:
    bounded: Any = extend(dialect, {name: _counted(rule, of_a_server=of_a_server) for name, rule in rules.items()})
    evolve = bounded.evolve

    def evolved(validator: Any, **changes: Any) -> Any:
        # The target of a reference may name a dialect, whose rules have no bounds.
        schema = changes.get("schema")
        if isinstance(schema, dict) and "$schema" in schema:
            changes["schema"] = {key: value for key, value in schema.items() if key != "$schema"}
        return evolve(validator, **changes)

    bounded.evolve = evolved
    return bounded


def _replaced(dialect: Any) -> dict[str, Any]:
    """Return the rules of a dialect, with those replaced that could take long by themselves."""
    own: dict[str, Any] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "enum": _enum,
        "uniqueItems": _unique_items,
        "multipleOf": _multiple_of,
    }
    return dict(dialect.VALIDATORS) | own


def _counted(rule: Callable[..., Any], *, of_a_server: bool) -> Callable[..., Iterator[Any]]:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        spent = _spent.get()
        spent.rules_left -= 1
        if spent.rules_left < 0:
            raise _TooLong
        spent.step()
        if of_a_server and instance is None and (schema.get("nullable") is True or schema.get("default", 0) is None):
            return  # as OpenAPI 3.0 writes it, and as those do whose values may be missing
        yield from rule(validator, value, instance, schema) or ()

    return check


def _enum(_validator: Any, choices: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    spent, given = _spent.get(), _comparable(instance)
    for choice in choices:
        spent.step()
        if _comparable(choice) == given:
            return
    yield ValidationError("enum")


def _multiple_of(_validator: Any, divisor: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """Divide as it is written: for floats, 4.02 would be no multiple of 0.01."""
    if not _is_number(instance) or not divisor:
        return
    if Fraction(str(instance)) % Fraction(str(divisor)):
        yield ValidationError("multipleOf")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unique_items(_validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not wanted or not isinstance(instance, list):
        return
    spent, seen = _spent.get(), set[Any]()
    for item in instance:
        spent.step()
        seen.add(_comparable(item))
    if len(seen) < len(instance):
        yield ValidationError("uniqueItems")


def _comparable(value: Any) -> Any:
    """Return what is equal for equal JSON values only: 1 is 1.0, and true is not a number."""
    match value:
        case dict():
            return frozenset((key, _comparable(item)) for key, item in value.items())
        case list():
            return tuple(map(_comparable, value))
        case bool():
            return ("bool", value)
        case _:
            return ("plain", value)


def _required(_validator: Any, names: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Apply the rule to the fields that have no default: generators list the others as required, too."""
    if not isinstance(instance, dict) or not isinstance(names, list):
        return
    known = schema.get("properties", {})
    needed = [name for name in names if not (isinstance(field := known.get(name), dict) and "default" in field)]
    if any(name not in instance for name in needed):
        yield ValidationError("required", validator="required", validator_value=needed)


def _pattern(_validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and _found(pattern, instance) is False:
        yield ValidationError("pattern")


def _pattern_properties(validator: Any, rules: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, rule in rules.items():
        for key, value in instance.items():
            if _found(pattern, key):
                yield from validator.descend(value, rule, path=key, schema_path=pattern)


def _additional_properties(plain: Any, validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Apply the rule to the fields that no pattern may be meant for."""
    patterns = schema.get("patternProperties", {})
    if isinstance(instance, dict):
        instance = {
            key: value for key, value in instance.items() if all(_found(pattern, key) is False for pattern in patterns)
        }
    yield from plain(validator, rule, instance, {"properties": schema.get("properties", {})}) or ()


def _explain(error: Any, root: str) -> str:
    where = _path(error.absolute_path, root)
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
