"""Walk through the arguments of a call, and say once what holds for all below a pointer."""

from collections.abc import Collection, Iterator
from typing import Any

from backstay.canonical import pointer_to
from backstay.provenance.source import BY_MODEL, MOST_LEAVES, Parts, among
from backstay.provenance.targets import Shape, hosts_in, is_named_person, is_postal, shape_of, tells_of_a_meeting
from backstay.provenance.words import remembered_of_names
from backstay.stored_texts import is_stored_text


def looked_at(arguments: Any, only: Collection[str] = ("",)) -> Iterator[tuple[str, Any, bool]]:
    """Yield what is to be looked up at and below some pointers, and whether it is a key."""
    return (found for found in _looked_at(arguments) if among(found[0], only))


def _looked_at(arguments: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield every leaf with its pointer, and every key that looks like a target, which is marked."""
    waiting: list[tuple[str, Any]] = [("", arguments)]
    while waiting:
        pointer, item = waiting.pop()
        within = inside(item)
        if not within:
            yield pointer, item, False
        for step, value in reversed(within):
            waiting.append((pointer_to(pointer, step), value))
        for step, _ in within if isinstance(item, dict) else ():
            if _is_target(str(step)):
                yield pointer_to(pointer, step), str(step), True


@remembered_of_names(1024)
def _is_target(key: str) -> bool:
    """Return whether a key looks like a target."""
    return shape_of("", key) != "other"


def name_at(pointer: str) -> str:
    """Return the name of the argument that a pointer leads to; elements of a list bear the name of the list.

    A line of a postal address bears the name of the address, too, what somebody is called, as whom, and the number of
    a parcel, that it is tracked by it.
    """
    names = [name for name in pointer.split("/") if name and not name.isdecimal()]
    above = names[-2] if len(names) > 1 else ""
    if is_postal(above):
        return f"{above}_address_{names[-1]}"
    if len(names) > 1 and (is_named_person(above, names[-1]) or above.lower() == "tracking"):
        return f"{above}_{names[-1]}"
    return names[-1] if names else ""


def shape_at(pointer: str, name: str, value: Any, arguments: dict[str, Any]) -> Shape:
    """Return the shape of a leaf; an attachment goes where the call goes, unless its address is a URL."""
    if isinstance(value, float | bool) or value is None:
        return "other"
    shape = shape_of(name, value if isinstance(value, str) else str(value))
    if shape == "name" and tells_of_a_meeting(name, arguments):
        return "other"
    attached = any("attachment" in step.lower() for step in pointer.split("/"))
    return "other" if attached and not (isinstance(value, str) and hosts_in(value)) else shape


def collapsed(value: Any, by: dict[str, Parts], pointer: str = "") -> dict[str, Parts]:
    """Say once for all that is below a pointer what holds for all of it."""
    within = inside(value)
    if not within:
        return {pointer: by.get(pointer, BY_MODEL)}
    found: dict[str, Parts] = {}
    for step, item in within:
        found |= collapsed(item, by, pointer_to(pointer, step))
    kinds = set(found.values())
    return {pointer: kinds.pop()} if len(kinds) == 1 else found


def inside(value: Any) -> list[tuple[Any, Any]]:
    """Return what a value holds, by key or place; nothing of a leaf."""
    match value:
        case dict() if not is_stored_text(value):
            return list(value.items())
        case list():
            return list(enumerate(value))
        case _:
            return []


def bounded(by: dict[str, Parts], first: set[str]) -> tuple[dict[str, Parts], int]:
    """Keep the sources of the given number of arguments, those that matter most among them, and count the others."""
    if len(by) <= MOST_LEAVES:
        return by, 0
    steps = [pointer.split("/") for pointer in first]
    above = {"/".join(names[:end]) for names in steps for end in range(len(names) + 1)}
    kept = sorted(by, key=lambda at: at not in above)
    chosen = set(kept[:MOST_LEAVES])
    return {at: parts for at, parts in by.items() if at in chosen}, len(by) - len(chosen)
