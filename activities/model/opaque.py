"""Keep what endpoints put beside their answers, and give it back to the model that it came from, unchanged.

It is sealed: no page, export, event or log holds it, and no other prompt. Nobody can look into it, so it is only
searched for secrets that are known; one that holds any is not kept.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import structlog

from activities.endpoints.endpoints import Target
from activities.model.message import OWN, MessageExtras
from activities.model.transcript import Item, Transcripts
from activities.payloads import apart
from activities.records import Records
from backstay.canonical import canonical, digest_of, read_json, texts_of
from backstay.errors import Pruned, WorkerMisfit
from backstay.redaction.naming import PartChanges, masked_parts, masked_schema
from backstay.redaction.redactor import Redactor
from store.blobs.shown import Missing

FIELD = "opaque"
MOST_BYTES = 131_072
"""What may be beside one message."""
_CACHED = 128

log = structlog.get_logger("backstay.model")


@dataclass
class Opaque:
    """Keep and find what was beside the messages of runs."""

    records: Records
    transcripts: Transcripts
    recent: OrderedDict[tuple[str, str], MessageExtras] = field(
        default_factory=OrderedDict[tuple[str, str], MessageExtras]
    )

    async def keep(self, run: str, target: Target, beside: MessageExtras) -> dict[str, Any]:
        """Seal it; return what the item of the message says of it, or why nothing was kept."""
        if not beside:
            return {}
        redactor = (await self.records.secrets.of(run)).redactor
        plain = beside.plain()
        size, why = await apart(
            plain, lambda: _looked_at(plain, redactor, min(MOST_BYTES, self.transcripts.window // 2))
        )
        if why:
            log.warning("model.opaque_dropped", model=target.name, reason=why)
            return {f"{FIELD}_dropped": why}
        ref = await self.records.store.blobs.of(run).seal_json(plain)
        self._keep(run, ref, beside)
        return {FIELD: {"ref": ref, "of": maker(target), "bytes": size}}

    async def of(self, run: str, target: Target, items: Iterable[Item]) -> dict[str, MessageExtras]:
        """Return what was beside messages that this very model has written, by ref."""
        own = maker(target)
        refs = [item[FIELD]["ref"] for item in items if item.get(FIELD, {}).get("of") == own]
        found = {ref: await self._read(run, ref) for ref in refs}
        return {ref: beside for ref, beside in found.items() if beside is not None}

    async def _read(self, run: str, ref: str) -> MessageExtras | None:
        if (known := self.recent.get((run, ref))) is not None:
            self.recent.move_to_end((run, ref))
            return known
        try:
            beside = MessageExtras.read(await self.records.store.blobs.of(run).unseal_json(ref))
        except (Missing, Pruned, WorkerMisfit) as error:
            # The plain form says what is to be said; the endpoint tells if it wants more.
            log.warning("model.opaque_lost", reason=str(error))
            return None
        self._keep(run, ref, beside)
        return beside

    def _keep(self, run: str, ref: str, beside: MessageExtras) -> None:
        self.recent[run, ref] = beside
        while len(self.recent) > _CACHED:
            self.recent.popitem(last=False)


def maker(target: Target) -> str:
    """Return by what a model is known again: its name, its endpoint, and what that calls it."""
    form = [] if target.api == "chat" else [target.api]
    return digest_of([target.name, target.where, target.model, *form])[:16]


def _looked_at(plain: dict[str, Any], redactor: Redactor, most: int) -> tuple[int, str]:
    """Return how large it is, and why it cannot be kept."""
    try:
        size = len(canonical(plain).encode())
    except (ValueError, RecursionError):
        return 0, "it cannot be sent as it came"
    if size > most:
        return size, f"it is larger than {most} bytes"
    return size, "" if redactor.without_known(plain) == plain else "it holds a known secret"


def with_beside(message: dict[str, Any], beside: MessageExtras) -> dict[str, Any]:
    """Return a message with what was beside it; the engine's own words stay as they are."""
    found = {**foreign(beside.message), **message}
    if "tool_calls" in message:
        pairs = enumerate(message["tool_calls"])
        found["tool_calls"] = [_call(call, _at(beside.calls, n), _at(beside.functions, n)) for n, call in pairs]
    return found


def _call(call: dict[str, Any], beside: Mapping[str, Any], function: Mapping[str, Any]) -> dict[str, Any]:
    if not beside and not function:
        return call
    return {**foreign(beside), **call, "function": {**foreign(function), **call["function"]}}


def foreign(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is not one of the engine's own fields in a message, a call or a function."""
    return {name: value for name, value in given.items() if name not in OWN}


def _at(listed: tuple[dict[str, Any], ...], place: int) -> Mapping[str, Any]:
    return listed[place] if place < len(listed) else {}


def masked(request: dict[str, Any], redactor: Redactor | None) -> dict[str, Any]:
    """Return a request with a mask for each known secret in its messages and in what functions say of themselves.

    Roles, ids, the model and the engine's own fields stay. A name stays where the secret in it is an ordinary word;
    a function with any other secret in its name is left out.
    """
    return masked_parts(request, redactor, _masked)


def _masked(request: dict[str, Any], change: PartChanges) -> dict[str, Any]:
    found = {**request, "messages": [_masked_message(message, change) for message in request["messages"]]}
    if "tools" in request:
        tools = [(tool, _masked_tool(tool, change)) for tool in request["tools"]]
        found["tools"] = [new for old, new in tools if new["function"]["name"] == old["function"]["name"]]
    return found


def _masked_message(message: dict[str, Any], change: PartChanges) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        content = [{**part, "text": change.prose(part["text"])} if "text" in part else part for part in content]
    elif content:
        content = change.prose(content)
    found = message | ({"content": content} if "content" in message else {})
    if "tool_calls" in message:
        found["tool_calls"] = [_masked_call(call, change) for call in message["tool_calls"]]
    # Additions to a message go as they came, or not at all.
    return found if message["role"] != "assistant" or _is_kept(message, change) else bare(found)


def _masked_call(call: dict[str, Any], change: PartChanges) -> dict[str, Any]:
    function = call["function"]
    given, name = function["arguments"], change.name(function["name"])
    return {**call, "function": {**function, "name": name, "arguments": _masked_arguments(given, change.prose(given))}}


def _masked_arguments(given: str, clean: str) -> str:
    """Return the arguments of a call with masks in them as JSON, as they were before."""
    if clean == given:
        return given
    try:
        read_json(clean)
    except ValueError:
        # A number, or a secret over several values, became a mask.
        return canonical({"arguments": clean})
    return clean


def _is_kept(message: dict[str, Any], change: PartChanges) -> bool:
    calls = message.get("tool_calls", ())
    beside = [foreign(message), *map(foreign, calls), *(foreign(call["function"]) for call in calls)]
    texts = [*chain.from_iterable(map(texts_of, beside))]
    return not texts or change.prose(texts) == texts


def _masked_tool(tool: dict[str, Any], change: PartChanges) -> dict[str, Any]:
    about = tool["function"]
    name, description = change.name(about["name"]), change.prose(about["description"])
    parameters = masked_schema(about["parameters"], change)
    return {**tool, "function": {**about, "name": name, "description": description, "parameters": parameters}}


def bare(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without what was beside it."""
    found = {name: value for name, value in message.items() if name in OWN}
    if "tool_calls" in found:
        found["tool_calls"] = [
            {
                "id": call["id"],
                "type": call["type"],
                "function": {name: call["function"][name] for name in ("name", "arguments")},
            }
            for call in found["tool_calls"]
        ]
    return found
