"""Judge what secrets are used for: in which arguments they are passed, and who may be shown one."""

import json
from collections.abc import Iterator
from typing import Any

from backstay.canonical import pointer_to
from backstay.policies.rule import clip_line
from backstay.redaction.handles import belongs_to, handles_in
from backstay.stored_texts import is_stored_text
from backstay.tools.tool import Safety, Tool


def undeclared(tool: Tool, arguments: dict[str, Any]) -> list[str]:
    """Return the arguments that would take a secret though they are not declared as credentials.

    A value that a tool that only reads gets back from its own provider, such as a paging token, needs no declaration.
    """
    found: dict[str, None] = {}
    for pointer, handle in _handles(arguments, ""):
        own_read = tool.safety is Safety.READ_ONLY and belongs_to(handle, tool.provider)
        if not own_read and not any(_is_within(pointer, declared) for declared in tool.secret_arguments):
            place = pointer.removeprefix("/") if pointer.count("/") == 1 else pointer
            # The names are a stranger's, and people read this line.
            found[clip_line(json.dumps(place)[1:-1], 80)] = None
    return list(found)


def _handles(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield each handle with the JSON pointer to where it stands."""
    match value:
        case dict() if is_stored_text(value):
            yield from ((pointer, handle) for handle in handles_in(value.get("handles")))
        case dict():
            for key, item in value.items():
                inner = pointer_to(pointer, key)
                yield from ((inner, handle) for handle in handles_in(key))
                yield from _handles(item, inner)
        case list():
            for index, item in enumerate(value):
                yield from _handles(item, pointer_to(pointer, index))
        case _:
            yield from ((pointer, handle) for handle in handles_in(value))


def _is_within(pointer: str, declared: str) -> bool:
    """Return whether a pointer leads to what is declared, by the name of an argument or by a pointer, or into it."""
    place = declared if declared.startswith("/") else f"/{declared}"
    return pointer == place or pointer.startswith(f"{place}/")
