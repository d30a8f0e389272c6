"""Keep results: the raw form sealed, the shown form and its digest for everybody."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from activities.payloads import Kept, Payloads, apart
from activities.run_secrets import Held, RunSecrets
from backstay.digests.digest import MOST_CHARS, words_of
from backstay.redaction.handles import handle_for
from backstay.redaction.text import KNOWN
from backstay.strict_json import clean_json
from store.secrets.handles import SecretValue
from store.store import Store

_MOST_RUNS = 1000
"""The runs whose words are kept; those of others are read again."""


@dataclass(frozen=True)
class Shown:
    """Hold a payload without its secrets, and the secrets apart."""

    payload: Any
    secrets: dict[str, SecretValue]


class Records(Payloads):
    """Write and read result records; a record is what a ToolResult's `ref` names."""

    def __init__(self, store: Store, secrets: RunSecrets, digest_characters: int = MOST_CHARS) -> None:
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
    ) -> Kept:
        """Seal a payload and its files, and store what may be shown of it.

        What stands for a file in the payload gets the ref of the sealed file beside its hash. `read` holds the codes
        of what a payload was computed from.
        """
        blobs = self.store.blobs.of(run)
        refs = {name: await blobs.seal(data) for name, data in (files or {}).items()}
        whole = payload if not refs else [_with_ref(part, refs) for part in payload]
        clean = await apart(whole, lambda: clean_json(whole))
        shown = await self.show(run, clean, provider)
        raw = await blobs.seal_json(clean) if shown.secrets else None
        return await self.write(run, label, shown.payload, raw, read=read)

    async def show(self, run: str, payload: Any, provider: str) -> Shown:
        """Replace every secret in a payload by a handle and remember what the handles stand for."""
        held = await self.secrets.of(run)
        shown = await self._replaced(held, run, payload, provider)
        if shown.secrets.keys() <= held.handles.keys():
            return shown
        held = await self.secrets.remember(run, shown.secrets)
        # What is known only now may also stand elsewhere in the payload, under no telling name.
        again = await self._replaced(held, run, shown.payload, provider)
        if again.secrets:
            await self.secrets.remember(run, again.secrets)
        return Shown(again.payload, shown.secrets | again.secrets)

    async def text(self, run: str, text: str) -> str:
        """Return a text with every secret masked, for errors and progress."""
        return (await self.secrets.of(run)).redactor.text(text)

    async def _replaced(self, held: Held, run: str, payload: Any, provider: str) -> Shown:
        key = self.store.run_key(run)
        secrets: dict[str, SecretValue] = {}

        def substitute(label: str, value: Any) -> str:
            given = SecretValue(provider=provider, value=value if isinstance(value, str) else str(value))
            # A provider that repeats its own secret gets the handle that the secret has already.
            known = held.by_value.get(given) if label == KNOWN else None
            handle = known or handle_for(key, provider, label, value)
            secrets[handle] = given
            return handle

        return Shown(await apart(payload, lambda: held.redactor.replace(payload, substitute)), secrets)


def _with_ref(part: Any, refs: Mapping[str, str]) -> Any:
    name = str(part.get("sha256")) if isinstance(part, dict) else ""
    return {**part, "ref": refs[name]} if name in refs else part
