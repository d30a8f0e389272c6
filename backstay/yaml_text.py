"""Read YAML that people write, and write values so that they are read again as the very same.

A key that is there twice is refused, since one of its values would not count.
"""

import json
from typing import Any

import yaml

_MERGE = "tag:yaml.org,2002:merge"
_TIMESTAMP, _TEXT, _BOOL = (f"tag:yaml.org,2002:{kind}" for kind in ("timestamp", "str", "bool"))
_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_MISTAGGED = (AttributeError, IndexError, KeyError, TypeError)
"""What the loader raises where a tag, such as !!bool, does not fit its value."""
_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) - frozenset('"\\')


class DatesAsText(yaml.SafeLoader):
    """Read a date or a time as the text that is written there, as a call or a task in JSON holds it."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """Return the tag of a node; 10:30 is a time, and not the number 630."""
        tag = super().resolve(kind, value, implicit)
        return _TEXT if tag in _NUMBERS and ":" in value else tag


DatesAsText.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class AsWritten(DatesAsText):
    """Read a number, or true or false, only where JSON would write the very same; 010, 3.10 and yes are text."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """Return the tag of a node."""
        tag = super().resolve(kind, value, implicit)
        return _TEXT if (tag in _NUMBERS or tag == _BOOL) and number_as_written(value) == value else tag


def number_as_written(text: str) -> Any:
    """Return the number, or true or false, that JSON would write as this text; where there is none, the text."""
    try:
        value = json.loads(text)
        return value if json.dumps(value) == text else text
    except ValueError:
        return text


def read_yaml(text: str, kind: type[yaml.SafeLoader] = yaml.SafeLoader) -> Any:
    """Return the value; raises yaml.YAMLError, also for a key that is there twice and for what cannot be a value.

    Such an error has line and column, but where the text is nested too deeply.

    `kind` says what is read as something else than text.
    """
    loader = kind(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, loader)
        return loader.construct_document(node)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    finally:
        loader.dispose()


def as_json(value: Any) -> Any:
    """Return what YAML holds as JSON has it. Raises ValueError, naming the fix."""
    try:
        return json.loads(json.dumps(value, default=str))
    except (TypeError, ValueError) as error:
        # A key that is a tagged date or a list, or a part that holds itself.
        raise ValueError(f"cannot be written as JSON: {error}; put keys in quotes") from None


def _check(root: yaml.Node, loader: yaml.SafeLoader) -> None:
    """Raise MarkedYAMLError for a key that is there twice, and for what looks like a date or number and is none."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        below: list[yaml.Node] = []
        match node:
            case yaml.MappingNode():
                keys: set[tuple[str, str]] = set()
                for key, item in node.value:
                    below += (key, item)
                    if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                        continue
                    if (key.tag, key.value) in keys:
                        raise yaml.MarkedYAMLError(
                            None, None, f"{key.value}: duplicate key; keep one of them", key.start_mark
                        )
                    keys.add((key.tag, key.value))
            case yaml.SequenceNode():
                below = node.value
            case yaml.ScalarNode() if node.tag != _MERGE:
                _check_scalar(node, loader)
            case _:
                pass
        # A node that an alias names again is the same node.
        fresh = [item for item in below if id(item) not in seen]
        seen |= {id(item) for item in fresh}
        waiting += fresh


def _check_scalar(node: yaml.ScalarNode, loader: yaml.SafeLoader) -> None:
    try:
        loader.construct_object(node)
    except (ValueError, OverflowError) as error:
        said = f"{node.value[:60]}: {error}; put it in quotes"
        raise yaml.MarkedYAMLError(None, None, said, node.start_mark) from None
    except _MISTAGGED:
        said = f"{node.value[:60]}: not of the type that its tag !!{node.tag.rpartition(':')[2]} says; remove the tag"
        raise yaml.MarkedYAMLError(None, None, said, node.start_mark) from None


def written(value: Any) -> str:
    """Return a JSON value on one line of YAML, in ASCII: nothing in a string ends it, or means something to YAML."""
    match value:
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case int():
            return str(value)
        case float():
            text = repr(value)
            # Without a dot, YAML reads a number with an exponent as a string.
            return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text
        case dict():
            return "{" + ", ".join(f"{written(str(key))}: {written(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(written, value)) + "]"
        case _:
            return '"' + "".join(map(_sign, str(value))) + '"'


def _sign(sign: str) -> str:
    if sign in _PLAIN:
        return sign
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x1_0000 else f"\\U{ord(sign):08x}"
