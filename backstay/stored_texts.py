"""Tell the objects that stand for long texts in arguments, which the store keeps, from others that look like them.

`{"$ref": "<40 hex digits>", "bytes": 5000}` stands for a string, perhaps with `handles`. Any other object with a `$ref`
is somebody's own, such as a JSON Schema. One of exactly that form which somebody wrote is escaped: its `$ref` is
written `$$ref`, its `$$ref` is written `$$$ref`.
"""

from typing import Any, TypeGuard

REF = "$ref"
_FIELDS = frozenset({"bytes", "handles"})
_HEX = frozenset("0123456789abcdef")
_DIGITS = 40


def is_stored_text(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a value of arguments, as history holds them, stands for a string that the store keeps."""
    return _name_of(value) == REF


def holds_stored_text(value: Any) -> bool:
    """Return whether a JSON value, at any depth, holds what stands for a stored text."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if is_stored_text(item):
            return True
        match item:
            case dict():
                waiting += item.values()
            case list() | tuple():
                waiting += item
            case _:
                pass
    return False


def escape_object(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object so that it does not stand for a stored text: only one of that form is written otherwise."""
    name = _name_of(value)
    if not name:
        return value
    return {f"${key}" if key == name else key: item for key, item in value.items()}


def unescape_object(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object as it was before `escape_object`."""
    name = _name_of(value)
    if name in {"", REF}:
        return value
    return {key[1:] if key == name else key: item for key, item in value.items()}


def escape_stored(value: Any) -> Any:
    """Return a JSON value in which nothing stands for a stored text."""
    match value:
        case dict():
            return {key: escape_stored(item) for key, item in escape_object(value).items()}
        case list():
            return [escape_stored(item) for item in value]
        case _:
            return value


def _name_of(value: Any) -> str:
    """Return the field that names the text in an object of this form, escaped or not; empty for any other value."""
    if not isinstance(value, dict) or "bytes" not in value or len(value) not in (2, 3):
        return ""
    name = next((key for key in value if key[:1] == "$" and key.lstrip("$") == "ref"), "")
    ref, size = value.get(name), value["bytes"]
    fits = isinstance(ref, str) and len(ref) == _DIGITS and _HEX.issuperset(ref) and type(size) is int
    return name if fits and value.keys() - {name} <= _FIELDS else ""
