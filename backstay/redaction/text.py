"""Replace the secrets in one text."""

import re
from collections import deque
from collections.abc import Callable, Container, Iterator
from typing import Any

from backstay.redaction.assignments import assignments_in
from backstay.redaction.bare_tokens import bare_tokens_in
from backstay.redaction.handles import JOINER, MARK, split_handles, split_lookalikes
from backstay.redaction.key_lines import begins_key
from backstay.redaction.known_secrets import KnownSecrets
from backstay.redaction.leaves import leaves_of, mask_spread
from backstay.redaction.manifests import SECRET, manifests_in
from backstay.redaction.patterns import commands_in, keys_and_urls_in, schemes_in
from backstay.redaction.sensitive_names import SensitiveNames
from backstay.redaction.tables import columns_in
from backstay.redaction.vendor_tokens import Span, runs_in, tokens_in

Substitute = Callable[[str, Any], str]
"""Takes the kind of a secret and its value; returns a mask or a SecretHandle."""

KNOWN = "known"
"""The kind of a secret that is found because it is known."""
KNOWN_MASK = f"[REDACTED:{KNOWN}]"
_MASK = re.compile(r"\[REDACTED:[a-z0-9_]{1,40}\]")
_SHORTEST = 8
_MOST_REMEMBERED = 20_000
_LONGEST_REMEMBERED = 120


class TextRedactor:
    """Replace the secrets in texts."""

    def __init__(
        self, names: SensitiveNames, known: KnownSecrets | None, handles: Container[str], substitute: Substitute
    ) -> None:
        """Take sensitive names, known secrets that may occur, handles that were given out, and the replacement."""
        self.names = names
        self.known = known
        self._handles = handles
        self._substitute = substitute
        self._beside: list[Any] = []
        self._fields: frozenset[str] | None = None
        self.made: dict[str, tuple[str, Any]] = {}
        """What stands for secrets, with the kind and the value of the last that each stands for."""
        self._harmless: set[str] = set()
        self.begins_key = False
        """Whether a private key began in a string and did not end there."""

    def beside(self, payload: Any) -> None:
        """Take a payload whose texts are to be redacted: a field of its own there is an identifier."""
        self._beside.append(payload)
        self._fields = None

    def _is_field(self, text: str) -> bool:
        if self._fields is None:
            # Few texts come to this question, so the payload is only now looked through.
            self._fields = frozenset(leaf for payload in self._beside for leaf in leaves_of(payload).texts)
        return text in self._fields

    def substitute(self, kind: str, value: Any) -> str:
        """Return what stands for a secret."""
        if kind == "private_key" and isinstance(value, str) and begins_key(value):
            self.begins_key = True
        made = self._substitute(kind, value)
        self.made[made] = kind, value
        return made

    def without_spread(self, payload: Any) -> Any:
        """Return a payload with a mask for each leaf that has only a part of a known secret."""
        return payload if self.known is None else mask_spread(payload, self.known, self.split, KNOWN_MASK)

    def knows(self, text: str) -> bool:
        """Return whether a known secret is in a string."""
        return self.known is not None and bool(self.known.places_in(text))

    def replaced(self, text: str) -> str:
        """Return a string with its secrets replaced, searched until nothing more is found."""
        if len(text) < _SHORTEST and self.known is None and "=" not in text and ":" not in text and "--" not in text:
            return text
        if text in self._harmless:
            return text
        parts = self.split(text)
        while True:
            found = [done for part, is_done in parts for done in ([(part, True)] if is_done else self._once(part))]
            if len(found) == len(parts):
                break
            parts = found
        if any(is_done for _, is_done in found):
            return "".join(part for part, _ in found)
        if len(text) <= _LONGEST_REMEMBERED:
            if len(self._harmless) >= _MOST_REMEMBERED:
                self._harmless.clear()
            self._harmless.add(text)
        return text

    def read(self, name: str) -> tuple[str | None, bool]:
        """Return the kind of a name and whether it is certain; the replaced part of the name is not read."""
        if "[" not in name and "⟦" not in name:
            return self.names.read(name)
        found = (self.names.read(part) for part, is_done in self.split(name) if not is_done)
        return next((kind for kind in found if kind[0]), (None, False))

    def split(self, text: str) -> list[tuple[str, bool]]:
        """Cut a string into parts that are handles or masks already, and parts that are not."""
        if JOINER in text:
            # A part that was told apart from a handle is not a handle, and not a secret either, unless one is known to
            # be in it.
            apart = split_lookalikes(text)
            if len(apart) > 1 or apart[0][1]:
                return [found for part, done in apart for found in self._split_one(part, done=done)]
        return self._split(text)

    def _split_one(self, part: str, *, done: bool) -> list[tuple[str, bool]]:
        return [(part, True)] if done and not (self.known is not None and self.knows(part)) else self._split(part)

    def _split(self, text: str) -> list[tuple[str, bool]]:
        if MARK not in text and "[REDACTED:" not in text:
            return [(text, False)]
        parts: list[tuple[str, bool]] = []
        for part, handle in split_handles(text):
            if handle is not None and not self._is_forged_handle(part):
                parts.append((part, True))
                continue
            at = 0
            for found in _MASK.finditer(part):
                if self._is_forged(found.group()):
                    continue
                parts += [(part[at : found.start()], False)] if found.start() > at else []
                parts.append((found.group(), True))
                at = found.end()
            parts += [(part[at:], False)] if at < len(part) else []
        return parts

    def _is_forged(self, mask: str) -> bool:
        """Return whether what looks like a mask holds a known secret instead of a kind."""
        kind = mask.removeprefix("[REDACTED:").removesuffix("]")
        return self.knows(kind) and self.names.read(kind)[0] is None

    def _is_forged_handle(self, handle: str) -> bool:
        """Return whether what looks like a handle, but was never given out, carries a known secret."""
        return self.known is not None and handle not in self.made and handle not in self._handles and self.knows(handle)

    def _once(self, text: str) -> list[tuple[str, bool]]:
        """Cut a string at every secret in it; secrets that overlap count as one."""
        found = deque(sorted(self._found_in(text), key=lambda span: (span[0], -span[1])))
        parts: list[tuple[str, bool]] = []
        at = 0
        while found:
            start, end, kind = found.popleft()
            while found and found[0][0] < end:
                end = max(end, found.popleft()[1])
            parts += [(text[at:start], False)] if start > at else []
            parts.append((self.substitute(kind, text[start:end]), True))
            at = end
        return [*parts, (text[at:], False)] if at < len(text) else parts

    def _found_in(self, text: str) -> Iterator[Span]:
        if self.known is not None:
            yield from ((*place, KNOWN) for place in self.known.places_in(text))
        runs = runs_in(text)
        if runs:
            yield from tokens_in(text, runs)
            yield from bare_tokens_in(text, runs, self._is_field)
        yield from keys_and_urls_in(text)
        if SECRET in text:
            yield from manifests_in(text)
        lowered = text.lower()
        if len(lowered) != len(text):
            # Some letters become two in lower case; positions must stay the same.
            lowered = "".join(sign.lower() if sign.isascii() else sign for sign in text)
        yield from schemes_in(text, lowered)
        yield from commands_in(text)
        cues = [found.span() for found in self.names.cue.finditer(lowered)]
        if cues:
            yield from assignments_in(text, cues, self.names)
            yield from columns_in(text, cues, self.names)
