"""Keep arguments in history small: refuse those that are too large, and offload big values to the blob store."""

from typing import Any

from backstay.bounds import ARGUMENTS, size_of
from backstay.canonical import deeper_than
from backstay.errors import ArgumentsInvalid
from backstay.redaction.handles import handles_in
from backstay.stored_texts import REF, escape_object
from store.blobs.shown import ShownBlobs

BIG_LEAF_BYTES = 4096
MAX_BYTES = ARGUMENTS
CALLS_BYTES = 131_072
"""The most bytes that the arguments of one batch may take in history, after offloading."""
DEEPEST = 64


def refuse_unfit(arguments: dict[str, Any]) -> None:
    """Raise ArgumentsInvalid for what is too large or too deep."""
    refuse_deep(arguments)
    refuse_unfit_size(arguments)


def refuse_unfit_size(arguments: dict[str, Any]) -> None:
    """Raise ArgumentsInvalid for what is larger than a call may be."""
    if size_of(arguments) > MAX_BYTES:
        raise ArgumentsInvalid(
            f"arguments: larger than {MAX_BYTES} bytes; store the content elsewhere and pass a reference"
        )


def refuse_deep(arguments: dict[str, Any]) -> None:
    """Raise ArgumentsInvalid for what is nested deeper than history can hold."""
    if deeper_than(arguments, DEEPEST):
        raise ArgumentsInvalid(f"arguments: nested more than {DEEPEST} levels deep; flatten them")


async def offload(blobs: ShownBlobs, value: Any) -> Any:
    """Return a value with its long texts replaced by refs; text that only looks like one is escaped."""
    match value:
        case dict():
            return {key: await offload(blobs, item) for key, item in escape_object(value).items()}
        case list():
            return [await offload(blobs, item) for item in value]
        case str() if (size := len(value.encode("utf-8", "replace"))) > BIG_LEAF_BYTES:
            ref = await blobs.put_json({"leaf": value})
            # The policy must see whose secrets would leave, even though it does not see the text.
            handles = handles_in(value)
            return {REF: ref, "bytes": size, **({"handles": handles} if handles else {})}
        case _:
            return value
