"""Keep a server from repeating what it was called with, and number the lists of servers that each user has alone."""

import base64
import itertools
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx2

from backstay.redaction.naming import PartChanges, masked_parts, masked_schema
from backstay.redaction.redactor import Redactor
from toolbox.providers.answer import Answer
from toolbox.providers.elicitation import input_required_of
from toolbox.providers.listing import ListedTool, Listing
from toolbox.providers.provider import ProviderCall

_TEXTS = frozenset({"instructions", "reason", "problems"})
_BETWEEN = re.compile(r"[;,\s]+")
"""Stands between the values of a header."""
_MOST_LISTS = 256
_TOKENS = 4
"""How many of the last tokens a server must not repeat: calls with an older one may still be under way."""
_TELLING = 16
"""From this many characters on, a part of a path is taken for a secret."""


class Scrubber:
    """Mask what a server must not repeat, in whatever it says."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Take what is masked."""
        self._secrets = tuple(secrets)
        self._redactor = Redactor(self._secrets)

    def text(self, text: str) -> str:
        """Return a string without it."""
        return str(self._redactor.without_known(text))

    def error(self, error: Exception) -> Exception:
        """Return an error without it."""
        error.args = tuple(self.text(part) if isinstance(part, str) else part for part in error.args)
        return error

    def call(self, call: ProviderCall) -> ProviderCall:
        """Return a call whose maker hears of progress and of tools without it."""
        on_progress = call.on_progress
        if on_progress is not None:
            call = replace(call, on_progress=lambda line: on_progress(self.text(line)))
        return call.relisted(self.listing)

    def answer(self, answer: Answer) -> Answer:
        """Return an answer without it, and without files that hold it."""
        clean, question, task = self._redactor.without_known, answer.question, answer.task
        if question is not None:
            kept = question.to_keep()
            question = input_required_of({**clean(kept), "state": kept["state"]})
        if task is not None:
            task = replace(task, said=self.text(task.said), refused=self.text(task.refused))
        texts: Any = {name: clean(getattr(answer, name)) for name in ("data", "error", "reason")}
        known = [secret.encode() for secret in self._secrets]
        files = {name: data for name, data in answer.files.items() if not any(secret in data for secret in known)}
        return replace(answer, question=question, task=task, files=files, **texts)

    def listing(self, found: Listing) -> Listing:
        """Return a list of tools without it, and without tools that are named by it."""
        clean = self._redactor.without_known
        tools = masked_parts(found.tools, self._redactor, _tools)
        said = asdict(replace(found, tools=()))
        texts: Any = {name: clean(value) for name, value in said.items() if name in _TEXTS}
        return replace(found, tools=tools, **texts)


def _tools(tools: tuple[ListedTool, ...], change: PartChanges) -> tuple[ListedTool, ...]:
    pairs = [(tool, _tool(tool, change)) for tool in tools]
    return tuple(new for tool, new in pairs if new.name == tool.name)


def _tool(tool: ListedTool, change: PartChanges) -> ListedTool:
    return replace(
        tool,
        name=change.name(tool.name),
        description=change.prose(tool.description),
        input_schema=masked_schema(tool.input_schema, change),
        output_schema=masked_schema(tool.output_schema, change),
    )


class TokenScrubber(Scrubber):
    """Mask the last tokens that a server was called with: those of now, whenever it says something."""

    def __init__(self) -> None:
        """Know none yet."""
        super().__init__(())
        self._tokens = deque[tuple[str, ...]](maxlen=_TOKENS)

    def note(self, token: str, *parts: str) -> None:
        """Mask a token that a server is called with, and the parts of it that could let somebody in."""
        if token and all(token != each[0] for each in self._tokens):
            self._tokens.append((token, *parts))
            self._secrets = tuple({part for each in self._tokens for part in each})
            self._redactor = Redactor(self._secrets)

    def beside(self, redactor: Redactor) -> Redactor:
        """Return a redactor that knows them too."""
        return redactor.knowing(self._secrets, redactor.handles)


class ListingNumbers:
    """Number lists of tools, so that equal numbers mean equal tools, whichever user has them."""

    def __init__(self) -> None:
        """Begin with one."""
        self._numbers: dict[str, int] = {}
        self._next = itertools.count(1)

    def numbered(self, listing: Listing) -> Listing:
        """Return a list with a number that it shares with equal lists only."""
        told = repr((listing.tools, listing.problems, listing.instructions))
        number = self._numbers.pop(told, None) or next(self._next)
        self._numbers[told] = number
        while len(self._numbers) > _MOST_LISTS:
            self._numbers.pop(next(iter(self._numbers)))
        return replace(listing, generation=number)


def secrets_in(url: str) -> frozenset[str]:
    """Return what of an address could let somebody in: a query, and long parts of its path."""
    parts = urlsplit(url)
    path = [part for part in parts.path.split("/") if len(part) >= _TELLING]
    query = [value or name for name, value in parse_qsl(parts.query, keep_blank_values=True)]
    if not path and not query:
        return frozenset()
    return frozenset({url, str(httpx2.URL(url)), parts.query, *path, *map(unquote, path), *query} - {""})


def secrets_in_header(value: str) -> frozenset[str]:
    """Return what of a header could let somebody in: all of it, what follows its scheme, and each value in it."""
    _, _, given = value.partition(" ")
    values = (part.partition("=")[2].strip(' "') for part in _BETWEEN.split(value))
    return frozenset({value, given, *given.split(), *values, *_basic(value)} - {""})


def _basic(value: str) -> tuple[str, ...]:
    """Return the name and the password that the scheme `Basic` only encodes, together and the password alone."""
    scheme, _, given = value.partition(" ")
    if scheme.lower() != "basic":
        return ()
    try:
        said = base64.b64decode(given, validate=True).decode()
    except ValueError:
        return ()
    return said, said.partition(":")[2]
