"""Arguments as history holds them, and as a tool receives them."""

from typing import Any

from activities.records import Records
from backstay.canonical import canonical
from backstay.errors import ArgumentsInvalid
from backstay.reference import resolve
from backstay.secret import handles_in, replace_handles

BIG_LEAF_BYTES = 4096
MAX_BYTES = 1_000_000
DEEPEST = 64


class Arguments:
    """Replace secrets by handles and big leaves by refs, and back."""

    def __init__(self, records: Records) -> None:
        """Keep big leaves in the store."""
        self.records = records
        self.blobs = records.store.blobs

    async def show(self, run: str, provider: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments without their secrets.

        Raises ArgumentsInvalid for what is too large, too deep, or for the engine alone to write.
        """
        _refuse_deep(arguments)
        if len(canonical(arguments)) > MAX_BYTES:
            raise ArgumentsInvalid(
                f"arguments: larger than {MAX_BYTES} bytes; store the content elsewhere and pass a reference"
            )
        _refuse_reserved(arguments)
        return (await self.records.show(run, arguments, provider)).payload

    async def fold(self, run: str, provider: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as a Decision carries them. Raises as `show`."""
        return {key: await self._folded(value) for key, value in (await self.show(run, provider, arguments)).items()}

    async def whole(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return folded arguments with their big leaves put back; ArgumentsInvalid for a ref that names none."""
        return {key: await self._unfolded(value) for key, value in arguments.items()}

    async def unfold(self, run: str, arguments: dict[str, Any], results: dict[int, str]) -> dict[str, Any]:
        """Return the arguments as the tool receives them: refs, references and handles resolved."""
        whole = await self.whole(arguments)
        if results:
            last = max(results)
            steps: list[Any] = [None] * (last + 1)
            for index, ref in results.items():
                steps[index] = {"result": await self.records.shown(ref)}
            whole = resolve(whole, {"steps": steps})
        handles = handles_in(whole)
        if not handles:
            return whole
        known = await self.records.store.secrets.reveal(run, handles)
        unknown = next((handle for handle in handles if handle not in known), None)
        if unknown is not None:
            raise ArgumentsInvalid(
                f"arguments: {unknown} is not a secret of this run; use a handle from an earlier answer"
            )
        return replace_handles(whole, {handle: secret.value for handle, secret in known.items()})

    async def _folded(self, value: Any) -> Any:
        match value:
            case dict():
                return {key: await self._folded(item) for key, item in value.items()}
            case list():
                return [await self._folded(item) for item in value]
            case str() if len(value.encode("utf-8", "replace")) > BIG_LEAF_BYTES:
                ref = await self.blobs.put_json({"leaf": value})
                return {"$ref": ref, "bytes": len(value.encode("utf-8", "replace"))}
            case _:
                return value

    async def _unfolded(self, value: Any) -> Any:
        match value:
            case {"$ref": str(ref), **rest} if set(rest) == {"bytes"}:
                leaf = await self.blobs.get_json(ref)
                if not isinstance(leaf, dict) or set(leaf) != {"leaf"}:
                    raise ArgumentsInvalid(f"arguments: {ref[:80]!r} names no stored argument")
                return leaf["leaf"]
            case dict():
                return {key: await self._unfolded(item) for key, item in value.items()}
            case list():
                return [await self._unfolded(item) for item in value]
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
