"""What a Decision carries of arguments: nothing too large, big leaves as refs."""

from typing import Any

from backstay.canonical import canonical
from backstay.errors import ArgumentsInvalid
from backstay.redaction.handles import handles_in
from store.blobs.shown import ShownBlobs

BIG_LEAF_BYTES = 4096
MAX_BYTES = 1_000_000
CALLS_BYTES = 131_072
"""Of the folded arguments of calls that are made together: history holds them."""
DEEPEST = 64


def refuse_unfit(arguments: dict[str, Any]) -> None:
    """Raise ArgumentsInvalid for what is too large, too deep, or for the engine alone to write."""
    _refuse_deep(arguments)
    if len(canonical(arguments)) > MAX_BYTES:
        raise ArgumentsInvalid(
            f"arguments: larger than {MAX_BYTES} bytes; store the content elsewhere and pass a reference"
        )
    _refuse_reserved(arguments)


async def offload(blobs: ShownBlobs, value: Any) -> Any:
    """Return a value with its big leaves replaced by refs."""
    match value:
        case dict():
            return {key: await offload(blobs, item) for key, item in value.items()}
        case list():
            return [await offload(blobs, item) for item in value]
        case str() if (size := len(value.encode("utf-8", "replace"))) > BIG_LEAF_BYTES:
            ref = await blobs.put_json({"leaf": value})
            # The policy must see whose secrets would leave, also where it does not see the text they stand in.
            handles = handles_in(value)
            return {"$ref": ref, "bytes": size, **({"handles": handles} if handles else {})}
        case _:
            return value


def _refuse_deep(arguments: dict[str, Any]) -> None:
    """Walk level by level, so that nothing can exhaust the stack."""
    level: list[Any] = [arguments]
    for _ in range(DEEPEST):
        level = [item for value in level for item in _inside(value)]
        if not level:
            return
    raise ArgumentsInvalid(f"arguments: nested more than {DEEPEST} levels deep; flatten them")


def _inside(value: Any) -> list[Any]:
    match value:
        case dict():
            return list(value.values())
        case list():
            return value
        case _:
            return []


def _refuse_reserved(value: Any) -> None:
    match value:
        case dict():
            if "$ref" in value:
                raise ArgumentsInvalid("arguments: the key $ref is reserved; give the value itself")
            for item in value.values():
                _refuse_reserved(item)
        case list():
            for item in value:
                _refuse_reserved(item)
        case _:
            return
