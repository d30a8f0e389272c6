"""Keep results: the raw form sealed, the shown form and its digest for everybody."""

import asyncio
from collections import OrderedDict
from collections.abc import Container, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from activities.payloads import PayloadRecords, StoredRecord, apart
from backstay.digests.digest import ANSWER_CHARS, words_of
from backstay.frozen import Frozen
from backstay.provenance.echo import UNKNOWN, kept_arguments
from backstay.redaction.handles import escape_lookalikes, handle_for, label_of
from backstay.redaction.redactor import Redactor, mask
from backstay.redaction.text import KNOWN
from backstay.strict_json import clean_json
from backstay.task.media import media_in
from store.secrets.handles import SecretHandles, SecretValue
from store.store import Store
from toolbox.providers.label import NOTHING, Label

Noun = TypeVar("Noun", bound=Frozen)
_MOST_RUNS = 1000
"""The runs whose words are kept; those of others are read again."""
_MOST_HELD = 2000
"""Handles of all runs together; those of the runs that were used last are kept in memory."""

_DEPTH_OF_FILES = 3
"""Files are in the list of an answer, or in one beside its structured content."""
_AT_ONCE = 10
"""How many new secrets are entered without a thread; each takes about a millisecond."""
_LOGGED = 20
"""For the logs, which do not say to which run a line belongs: the secrets of at most this many runs."""

PERSON = "person"
"""Where a secret that a person typed comes from, as its handle says."""

_told: ContextVar[dict[str, int] | None] = ContextVar("told", default=None)
"""How many handles runs had in the store when this activity looked last."""


@dataclass(frozen=True)
class RunHandles:
    """Hold the handles of one run, and a redactor that knows what they stand for."""

    redactor: Redactor
    handles: dict[str, SecretValue] = field(default_factory=dict[str, SecretValue], repr=False)
    complete: int = 0
    """How many handles the store had when this held all of them."""

    by_value: dict[SecretValue, str] = field(default_factory=dict[SecretValue, str], repr=False)


class RunSecrets:
    """Keep what runs hold, and read what other workers added."""

    def __init__(self, store: SecretHandles, redactor: Redactor) -> None:
        """Begin with a redactor that knows the secrets of this process."""
        self._store = store
        self._redactor = redactor
        self._held: OrderedDict[str, RunHandles] = OrderedDict()
        self._turn = asyncio.Lock()

    def look_once(self) -> None:
        """Let an activity that begins, and the tasks that it starts, look into the store once."""
        _told.set({})

    def tell(self, run: str, count: int) -> None:
        """Note how many handles a run has in the store now; spares this activity a look of its own."""
        if (told := _told.get()) is not None:
            told[run] = count

    async def of(self, run: str) -> RunHandles:
        """Return what a run holds now."""
        held = self.kept(run)
        told = (_told.get() or {}).get(run)
        if told is not None and told <= held.complete:
            return held
        count, new = await self._store.new_of_run(run, held.handles)
        self.tell(run, count)
        return await self._keep(run, new, count)

    def kept(self, run: str) -> RunHandles:
        """Return what this process remembers of a run, without a look into the store."""
        return self._held.get(run) or RunHandles(self._redactor)

    def masked(self, event: Any) -> Any:
        """Return what is to be logged with a mask for each secret of the runs that were used last."""
        for held in list(self._held.values())[-_LOGGED:]:
            event = held.redactor.without_known(event)
        return event

    async def remember(self, run: str, entries: Mapping[str, SecretValue]) -> RunHandles:
        """Store what handles stand for."""
        count = await self._store.remember(run, entries)
        self.tell(run, count)
        return await self._keep(run, entries, count)

    async def _keep(self, run: str, entries: Mapping[str, SecretValue], count: int) -> RunHandles:
        # In turns, so that no addition is lost to another.
        async with self._turn:
            held = self.kept(run)
            new = {handle: entry for handle, entry in entries.items() if handle not in held.handles}
            handles = held.handles | new
            # A spelling of a known secret is found by the secret; its own spellings would have no end.
            values = {str(entry.value) for handle, entry in new.items() if label_of(handle) != KNOWN}
            redactor = held.redactor
            if len(values) > _AT_ONCE:
                # Apart, so that heartbeats continue.
                redactor = await asyncio.to_thread(redactor.knowing, values, handles)
            elif new:
                redactor = redactor.knowing(values, handles)
            by_value = held.by_value | {entry: handle for handle, entry in new.items()}
            held = RunHandles(redactor, handles, count if len(handles) >= count else held.complete, by_value)
            self._install(run, held)
        return held

    def _install(self, run: str, held: RunHandles) -> None:
        if not held.handles:
            return
        self._held[run] = held
        self._held.move_to_end(run)
        while len(self._held) > 1 and sum(len(kept.handles) for kept in self._held.values()) > _MOST_HELD:
            self._held.popitem(last=False)


@dataclass(frozen=True)
class RedactedPayload:
    """Hold a payload without its secrets, and the secrets apart."""

    payload: Any
    secrets: dict[str, SecretValue]


class Records(PayloadRecords):
    """Write and read result records; a record is what a ToolResult's `ref` names."""

    def __init__(self, store: Store, secrets: RunSecrets, digest_characters: int = ANSWER_CHARS) -> None:
        """Keep everything in the store, and mask what runs hold handles for."""
        super().__init__(store.blobs, digest_characters)
        self.store = store
        self.secrets = secrets
        self._wanted: OrderedDict[str, frozenset[str]] = OrderedDict()

    async def wanted(self, run: str) -> frozenset[str]:
        """Return the words of the run's task."""
        if run not in self._wanted:
            workflow_id, _, workflow_run_id = run.rpartition("/")
            row = await self.store.runs.get(workflow_id, workflow_run_id)
            self._wanted[run] = frozenset() if row is None else words_of(row.text)
        self._wanted.move_to_end(run)
        while len(self._wanted) > _MOST_RUNS:
            self._wanted.popitem(last=False)
        return self._wanted[run]

    async def keep(
        self,
        run: str,
        label: str,
        payload: Any,
        provider: str,
        files: Mapping[str, bytes] | None = None,
        *,
        read: Sequence[str] = (),
        asked: Any = None,
        simulated: Container[int] = (),
        said_of: Label = NOTHING,
    ) -> StoredRecord:
        """Seal a payload and its files, and store what may be shown of it.

        The place of a file in the payload gets the ref of the sealed file beside its hash. `read` holds the codes
        of what a payload was computed from, and `asked` the arguments of the call, where the answer is the operator's
        own: for what it only repeats of them it does not vouch. `simulated` are the calls of a rehearsal in which it
        was read: values that it made up stay what they are. `said_of` is what its server says of who may read it; for
        what it does not vouch for itself, nobody does.
        """
        blobs = self.store.blobs.of(run)
        refs = {name: await blobs.seal(data) for name, data in (files or {}).items()}
        claims: dict[str, str] = {}
        whole = _with_refs(payload, refs, claims) if refs else payload
        media = await apart(files, lambda: media_in(files or {}, claims, refs)) if files else []
        clean = await apart(whole, lambda: clean_json(whole))
        shown = await self.show(run, clean, provider)
        known = self.secrets.kept(run).handles
        said = await apart(shown.payload, lambda: escape_lookalikes(shown.payload, known, simulated))
        raw = await blobs.seal_json(clean) if shown.secrets or said != shown.payload else None
        if asked and asked != UNKNOWN:
            asked = kept_arguments((await self.show(run, asked, provider)).payload)
        asked = UNKNOWN if said_of.untrusted else asked
        return await self.write(run, label, said, raw, read=read, asked=asked, media=media, private=said_of.private)

    async def show(self, run: str, payload: Any, provider: str) -> RedactedPayload:
        """Replace every secret in a payload by a handle and remember what the handles stand for."""
        held = await self.secrets.of(run)
        shown = await self._replaced(held, run, payload, provider)
        if shown.secrets.keys() <= held.handles.keys():
            return shown
        held = await self.secrets.remember(run, shown.secrets)
        # A secret that is known only now may also be elsewhere in the payload, under no telling name.
        again = await self._replaced(held, run, shown.payload, provider)
        if again.secrets:
            await self.secrets.remember(run, again.secrets)
        return RedactedPayload(again.payload, shown.secrets | again.secrets)

    async def hide(self, run: str, provider: str, label: str, value: str) -> None:
        """Make a value a secret of the run: wherever it stands from now on, its handle is shown."""
        handle = handle_for(self.store.run_key(run), provider, label, value)
        await self.secrets.remember(run, {handle: SecretValue(provider=provider, value=value)})

    async def text(self, run: str, text: str) -> str:
        """Return a string with every secret masked, for errors and progress."""
        return (await self.secrets.of(run)).redactor.text(text)

    async def cleaned(self, run: str, nouns: Sequence[Noun]) -> list[Noun]:
        """Return what is to be written of a run, such as its events, with no secret in any of its texts.

        A secret that the run holds becomes its handle, any other a mask. Each text is looked at by itself: the names of
        fields are the engine's own here.
        """
        if not nouns:
            return []
        # Without a look into the store, which each activity would pay for: secrets that people typed were hidden
        # before.
        held = self.secrets.kept(run)

        def substitute(label: str, value: Any) -> str:
            same = (handle for handle, secret in held.handles.items() if secret.value == value)
            return next(same, None) or mask(label, value)

        def clean(value: Any) -> Any:
            match value:
                case str():
                    return held.redactor.replace(value, substitute)
                case dict():
                    return {name: clean(item) for name, item in value.items()}
                case list():
                    return [clean(item) for item in value]
                case _:
                    return value

        plain = [noun.plain() for noun in nouns]
        found = await apart(plain, lambda: clean(plain))
        pairs = zip(nouns, plain, found, strict=True)
        return [noun if told == was else type(noun).model_validate(told) for noun, was, told in pairs]

    async def _replaced(self, held: RunHandles, run: str, payload: Any, provider: str) -> RedactedPayload:
        key = self.store.run_key(run)
        secrets: dict[str, SecretValue] = {}

        def substitute(label: str, value: Any) -> str:
            given = SecretValue(provider=provider, value=value if isinstance(value, str | int | float) else str(value))
            # A provider that repeats its own secret gets the handle that the secret has already.
            known = held.by_value.get(given) if label == KNOWN else None
            handle = known or handle_for(key, provider, label, value)
            secrets[handle] = given
            return handle

        return RedactedPayload(await apart(payload, lambda: held.redactor.replace(payload, substitute)), secrets)


def _with_refs(part: Any, refs: Mapping[str, str], claims: dict[str, str], depth: int = 0) -> Any:
    """Return a payload in which what stands for a file names its ref, and note of which kind each claims to be."""
    if depth == _DEPTH_OF_FILES:
        return part
    if isinstance(part, list):
        return [_with_refs(item, refs, claims, depth + 1) for item in part]
    if not isinstance(part, dict):
        return part
    name = part.get("sha256")
    if isinstance(name, str) and name in refs:
        claims.setdefault(name, str(part.get("mime") or part.get("type") or ""))
        return {**part, "ref": refs[name]}
    return {key: _with_refs(item, refs, claims, depth + 1) for key, item in part.items()}
