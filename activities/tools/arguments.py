"""Arguments as history holds them, and as a tool receives them."""

from collections.abc import Callable, Container, Mapping
from typing import Any

from activities.offloading import offload, refuse_unfit, refuse_unfit_size
from activities.records import Records
from backstay import calls
from backstay.errors import ArgumentsInvalid, Denied, ToolChanged
from backstay.provenance.source import ArgumentSources
from backstay.redaction.handles import (
    belongs_to,
    escape_lookalikes,
    handle_for,
    handles_in,
    is_json_like,
    provider_of,
    replace_handles,
    unescape_lookalikes,
)
from backstay.stored_texts import REF, is_stored_text, unescape_object
from backstay.strict_json import clean_json
from backstay.task.plan import Missing, holds_notation, resolve
from store.secrets.handles import SecretValue
from toolbox.catalog.definition import Definition


class Arguments:
    """Replace secrets by handles and big leaves by refs, and back."""

    def __init__(self, records: Records) -> None:
        """Keep big leaves in the store."""
        self.records = records
        self.blobs = records.store.blobs

    async def show(self, run: str, provider: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments without their secrets, so that `revealed` gives back what stands as JSON in a string.

        Raises ArgumentsInvalid for what is too large or too deep.
        """
        refuse_unfit(arguments)
        shown = (await self.records.show(run, arguments, provider)).payload
        if shown == arguments:
            return shown
        held = (await self.records.secrets.of(run)).handles
        values = {handle: held[handle].value for handle in handles_in([arguments, shown]) if handle in held}
        hidden: dict[str, SecretValue] = {}

        def hide(text: str) -> str:
            handle = handle_for(self.records.store.run_key(run), provider, "json", text)
            hidden[handle] = SecretValue(provider=provider, value=text)
            return handle

        shown = _hidden_where_lost(clean_json(arguments), shown, values, hide)
        if hidden:
            await self.records.secrets.remember(run, hidden)
        return shown

    async def fold(self, run: str, provider: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as a Decision carries them. Raises as `show`."""
        return await self.fold_shown(run, await self.show(run, provider, arguments))

    async def fold_shown(self, run: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments that are without secrets already as a Decision carries them.

        Raises ArgumentsInvalid for a handle that the run does not hold: nobody is asked about a call that cannot be
        made.
        """
        if handles := handles_in(arguments):
            _refuse_unknown(handles, (await self.records.secrets.of(run)).handles)
        return await offload(self.blobs.of(run), arguments)

    async def whole(self, run: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return offload arguments with their big leaves put back; ArgumentsInvalid for a ref that names none."""
        return {key: await self._unfolded(run, value) for key, value in unescape_object(arguments).items()}

    async def referred(
        self, run: str, arguments: dict[str, Any], results: dict[int, str] | None, missing: Missing = lambda _: None
    ) -> dict[str, Any]:
        """Return the arguments of a plan's step as they are sent: with what they refer to in earlier results.

        Without `results` they are not those of a plan, and stay as they are.
        """
        if results is None or not holds_notation(arguments):
            return arguments
        steps: list[Any] = [None] * (max(results, default=-1) + 1)
        for index, ref in results.items():
            steps[index] = {"result": await self.records.shown(run, ref)}
        resolved = resolve(arguments, {"steps": steps}, missing)
        refuse_unfit_size(resolved)
        return resolved

    async def resolved(self, run: str, arguments: dict[str, Any], results: dict[int, str] | None) -> dict[str, Any]:
        """Return the arguments with refs and references resolved, and with handles for secrets."""
        return await self.referred(run, await self.whole(run, arguments), results)

    async def revealed(self, run: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return resolved arguments as the tool receives them, with the secrets."""
        handles = handles_in(arguments)
        if not handles:
            return unescape_lookalikes(arguments)
        known = await self.records.store.secrets.reveal(run, handles)
        _refuse_unknown(handles, known)
        # In this order: text that only looked like a handle when it came in is none now.
        values = {handle: secret.value for handle, secret in known.items()}
        return unescape_lookalikes(replace_handles(arguments, values))

    async def of_task(self, run: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return what a task gives with texts that only look like marks of the engine marked as texts."""
        return escape_lookalikes(arguments, (await self.records.secrets.of(run)).handles)

    async def _unfolded(self, run: str, value: Any) -> Any:
        match value:
            case dict() if is_stored_text(value):
                leaf = await self.blobs.of(run).get_json(value[REF])
                if not isinstance(leaf, dict) or set(leaf) != {"leaf"}:
                    raise ArgumentsInvalid(f"arguments: {value[REF]!r} names no stored argument")
                return leaf["leaf"]
            case dict():
                return {key: await self._unfolded(run, item) for key, item in unescape_object(value).items()}
            case list():
                return [await self._unfolded(run, item) for item in value]
            case _:
                return value


def _hidden_where_lost(given: Any, shown: Any, values: Mapping[str, Any], hide: Callable[[str], str]) -> Any:
    """Return shown arguments in which a JSON text is hidden whole if its handles do not become what it was."""
    match given, shown:
        case dict(), dict() if len(given) == len(shown):
            pairs: Any = zip(given.values(), shown.items(), strict=True)
            return {name: _hidden_where_lost(old, new, values, hide) for old, (name, new) in pairs}
        case list(), list() if len(given) == len(shown):
            return [_hidden_where_lost(old, new, values, hide) for old, new in zip(given, shown, strict=True)]
        case str(), str() if shown != given and is_json_like(given):
            # What holds a handle already stays: it may be of another provider, and people are to see that.
            is_lost = not handles_in(given) and replace_handles(shown, values) != given
            return hide(given) if is_lost else shown
        case _:
            return shown


def refuse_brought_secrets(tool: str, arguments: dict[str, Any], resolved: dict[str, Any]) -> None:
    """Raise ArgumentsInvalid when references bring another provider's secret: nobody was asked about that."""
    for handle in set(handles_in(resolved)) - set(handles_in(arguments)):
        if not belongs_to(handle, tool.partition(".")[0]):
            raise ArgumentsInvalid(
                f"arguments: a reference would bring a secret of {provider_of(handle)} to {tool}; a plan may not "
                "do that, because nobody was asked; let the model make the call"
            )


def _refuse_unknown(handles: list[str], known: Container[str]) -> None:
    unknown = next((handle for handle in handles if handle not in known), None)
    if unknown is not None:
        raise ArgumentsInvalid(f"arguments: {unknown} is not a secret of this run; use a handle from an earlier answer")


def refuse_denied(
    ask: calls.CheckCall | calls.CallTool, shown: dict[str, Any], sources: ArgumentSources | None
) -> None:
    """Raise Denied when a rule denies what stood for something else while the call was ruled on."""
    for denial in ask.denials:
        if denial.holds(ask.tool, shown, sources):
            raise Denied(f"denied by the policy: {denial.line}")


def require_same(ask: calls.CallTool, definition: Definition) -> None:
    """Raise ToolChanged when a tool is no longer the one that was ruled on."""
    if ask.definition and not definition.tool.is_defined_by(ask.definition):
        raise ToolChanged(f"{ask.tool} is no longer the tool that was ruled on")
