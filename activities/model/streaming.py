"""Put a streamed answer together, and pass on what the model says while it arrives.

The whole is the same as what an endpoint answers that does not stream, and is read in the same way.
"""

import asyncio
import contextlib
import json
import re
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from activities.endpoints.client import ANSWER_BYTES, BodyRefused
from activities.endpoints.event_lines import lines_of
from activities.endpoints.usage import has_counts
from activities.model.functions import FINISH
from activities.model.message import as_function, beside, grown, text_of, whole_arguments
from activities.model.refusals import AnswerBroken, fault_in, has_error, tells_of_error
from backstay.errors import BackstayError, ModelUnavailable
from backstay.redaction.arriving import ArrivingText
from backstay.redaction.redactor import Redactor
from backstay.requests import AskModel
from store.deltas import Deltas

STREAMED: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""What is added to a request so that its answer is streamed, and says at its end what it used."""
Say = Callable[[str], None]
_DONE = b"[DONE]"
_BEGINNING = 1000
_OF_STREAMS = (b"data:", b"event:", b"id:", b"retry:", b"error:", b":")
_HOLD = frozenset({b"data", b"error"})
"""The names of lines that hold something; llama.cpp calls its errors so."""
CALLED = frozenset({"tool_calls", "function_call", "tool_use"})
"""The reasons that end an answer that ends with calls."""
_SUMMARY = re.compile(r'\s*\{\s*"summary"\s*:\s*"')
_LETTERS = re.compile(r'(?:[^"\\]|\\(?:["\\/bfnrt]|u(?![dD][89aAbB])[0-9a-fA-F]{4}|u[0-9a-fA-F]{4}\\u[0-9a-fA-F]{4}))*')
_TEXTS = ("content", "refusal")
EVERY_S = 0.15
"""How often words are passed on: often enough to be read along, and few enough writes."""


async def read_whole(body: bytes) -> Any:
    """Return the completion that a body holds; some endpoints stream although nobody has asked for it."""
    body = body.removeprefix(BOM_UTF8)
    begun = body[:_BEGINNING].lstrip()
    if not begun.startswith(_OF_STREAMS):
        return _json(body)

    async def parts() -> AsyncIterator[bytes]:
        yield body

    return await read_answer(parts(), lambda _: None)


async def read_answer(parts: AsyncIterator[bytes], say: Say) -> Any:
    """Return the completion that a streamed body makes up, or the one that an endpoint sends which does not stream.

    An error that comes before anything else is returned, as an endpoint sends it that does not stream.
    Raises ModelUnavailable for a stream that breaks off, AnswerBroken for one that tells of an error, BodyRefused for
    one that is too long, and ValueError or another error of a reader for what is not a completion.
    """
    answer, is_error = StreamedAnswer(say), False
    async for line in lines_of(parts):
        name, data = _field_in(line)
        if name not in _HOLD:
            if answer.is_empty and line.lstrip()[:1] in {b"{", b"["}:
                return _json(line)
            is_error = data == b"error" if name == b"event" else is_error
            continue
        if data == _DONE:
            answer.done = True
            break
        if not data:
            continue
        chunk = as_error(data) if is_error or name == b"error" else _json(data)
        if not isinstance(chunk, dict):
            # Some send a null to keep the connection open.
            continue
        if answer.is_empty and tells_of_error(chunk):
            return chunk
        answer.add(chunk)
    return answer.completion()


def _field_in(line: bytes) -> tuple[bytes, bytes]:
    name, _, data = line.partition(b":")
    return name, data.strip()


def as_error(data: bytes) -> dict[str, Any]:
    """Return what an endpoint says under the name of an error in the form in which most tell of one."""
    try:
        said = _json(data)
    except (ValueError, RecursionError):
        said = data.decode("utf-8", "replace")
    return said if isinstance(said, dict) and has_error(said) else {"error": said or {}}


def _json(raw: bytes) -> Any:
    """Return the JSON value of the bytes; those that are no UTF-8 become replacement characters."""
    try:
        return json.loads(raw)
    except UnicodeDecodeError:
        return json.loads(raw.decode("utf-8", "replace"))


def _name_in(piece: dict[str, Any]) -> str:
    """Return the name of the function in a piece of a call; empty where it has none."""
    function = piece.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


@dataclass
class _Call:
    """Hold a call of a function as far as it has arrived."""

    number: int = 0
    id: Any = None
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    whole: Any = None
    """Arguments that came as something else than text."""
    beside: dict[str, Any] = field(default_factory=dict[str, Any])
    """What is beside it, and beside what it calls, that means nothing here."""
    beside_function: dict[str, Any] = field(default_factory=dict[str, Any])

    def is_over(self, piece: dict[str, Any]) -> bool:
        """Return whether a piece with the same number is another call: some endpoints give each the same."""
        function = piece.get("function")
        if not isinstance(function, dict) or not _name_in(piece) or not self.name:
            return False
        given = piece.get("id")
        if given and self.id and given != self.id:
            return True
        # Of another function, a call that takes nothing is a call all the same.
        if given and given == self.id and self.is_blank and _name_in(piece) == self.name:
            return False
        given = function.get("arguments")
        begins = isinstance(given, dict) or (isinstance(given, str) and given.lstrip()[:1] == "{")
        return begins and self.is_whole()

    def is_repeated(self, piece: dict[str, Any], *, here: bool) -> bool:
        """Return whether a piece is this call once more, as some send it behind its pieces; `here`: it continues it."""
        function = piece.get("function")
        if not isinstance(function, dict):
            return False
        name, given = function.get("name"), function.get("arguments")
        is_meant = (name == self.name and self.id and piece.get("id") == self.id) if name else here
        begins = isinstance(given, dict) or (isinstance(given, str) and given.lstrip()[:1] in {"{", '"'})
        again = whole_arguments(given) if is_meant and begins else None
        if again is None:
            return False
        held = "".join(self.arguments) if self.whole is None else self.whole
        return bool(held) and whole_arguments(held) == again

    @property
    def is_blank(self) -> bool:
        """Return whether all that has come is an empty object, which some send before the arguments."""
        if self.whole is not None:
            return self.whole in ({}, [])
        return len(self.arguments) == 1 and self.arguments[0].strip() == "{}"

    def is_whole(self) -> bool:
        """Return whether its arguments have come to their end."""
        if self.whole is not None:
            return True
        last = next((text for text in reversed(self.arguments) if text.strip()), "")
        if not last.rstrip().endswith("}"):
            # To put all together for each piece would take the square of its length.
            return False
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False

    def add(self, piece: dict[str, Any]) -> str:
        """Take a piece; return the part of the arguments in it."""
        self.id = self.id or piece.get("id")
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        name, arguments = function.get("name"), function.get("arguments")
        grown(self.beside, beside(piece))
        grown(self.beside_function, beside(function))
        if isinstance(name, str) and name != self.name:
            # Some endpoints repeat the name with each piece.
            self.name += name
        if arguments and self.is_blank:
            self.whole, self.arguments = None, []
        if not isinstance(arguments, str):
            self.whole = self.whole if arguments is None else arguments
            return ""
        if arguments:
            self.arguments.append(arguments)
        return arguments

    def wire(self) -> dict[str, Any]:
        """Return the call as an endpoint sends it that does not stream."""
        arguments = self._text() if self.whole is None else self.whole
        function = {**self.beside_function, "name": self.name, "arguments": arguments}
        return {**self.beside, "id": self.id, "type": "function", "function": function}

    def _text(self) -> str:
        """Return the arguments; some send with each piece all that came before it, too, which is no JSON together."""
        pieces, text = self.arguments, "".join(self.arguments)
        if all(map(str.startswith, pieces[1:], pieces)) and whole_arguments(text) is None:
            return text if whole_arguments(pieces[-1]) is None else pieces[-1]
        return text


class _Summary:
    """Read the summary out of the arguments of `finish` while they arrive, where it comes first."""

    def __init__(self) -> None:
        self._text = ""
        self._at: int | None = None

    def add(self, piece: str) -> str:
        """Return what of the summary has become known."""
        self._text += piece
        if self._at is None:
            begun = _SUMMARY.match(self._text)
            if begun is None:
                return ""
            self._at = begun.end()
        found = _LETTERS.match(self._text, self._at)
        end = self._at if found is None else found.end()
        letters, self._text, self._at = self._text[self._at : end], self._text[end:], 0
        return str(json.loads(f'"{letters}"', strict=False)) if letters else ""


class StreamedAnswer:
    """Take the chunks of an answer, in the order in which they come."""

    def __init__(self, say: Say) -> None:
        """Tell `say` what the model says: its words, and the summary with which it finishes."""
        self._say = say
        self._texts: dict[str, list[str]] = {name: [] for name in _TEXTS}
        self._calls: list[_Call] = []
        self._numbered: dict[int, _Call] = {}
        """The last call of each number."""
        self._last: _Call | None = None
        self._elsewhere: list[dict[str, Any]] = []
        """Pieces of calls in other choices than the first."""
        self._summaries: dict[int, _Summary] = {}
        self._beside: dict[str, Any] = {}
        self._finish_reason: Any = None
        self._usage: Any = None
        self._counts_all = False
        """Whether the usage was told when the answer was over, so that it is of the whole."""
        self._fault: dict[str, Any] | None = None
        """What an endpoint says in place of words, where it does not call it an error."""
        self._is_answered = False
        self._size = 0
        self._said = ""
        self.is_empty = True
        self.done = False

    def add(self, chunk: Any) -> None:
        """Take one chunk; raises AnswerBroken when it tells of an error."""
        self.is_empty = False
        if has_error(chunk) or tells_of_error(chunk):
            raise AnswerBroken(chunk)
        # Some tell of progress in such words, too: it is an error where nothing follows.
        if chunk.get("choices"):
            self._fault, self._is_answered = None, True
        else:
            self._fault = self._fault or fault_in(chunk)
        usage = chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage")
        before = self._size
        for choice in chunk.get("choices") or ():
            if choice is None:
                continue
            if choice.get("index"):
                self._aside(choice.get("delta") or {})
                continue
            if has_error(choice):
                raise AnswerBroken(choice)
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
            # Kimi says there what it used.
            usage = choice.get("usage") or usage
            delta = choice.get("delta")
            # Some send the whole message once more behind its pieces.
            self._delta(delta or (None if self._is_begun else choice.get("message")) or {})
        self._note(usage, has_more=self._size > before)

    def _note(self, usage: Any, *, has_more: bool) -> None:
        """Take what a chunk says was used; before the end, one usage alone may be of a beginning only."""
        if usage:
            is_last = self._finish_reason is not None or (self._size > 0 and not has_more)
            # Some tell at each chunk what was used until then.
            self._counts_all = is_last or (self._usage is not None and self._usage != usage)
            self._usage = usage
        elif has_more:
            self._counts_all = False

    @property
    def _is_begun(self) -> bool:
        return bool(self._calls) or any(self._texts.values())

    def _aside(self, delta: dict[str, Any]) -> None:
        """Keep calls of another choice: some gateways put words and calls into choices of their own."""
        pieces = delta.get("tool_calls")
        for piece in pieces if isinstance(pieces, list) else []:
            self._count(len(json.dumps(piece)) + 100)
            self._elsewhere.append(piece)

    def _delta(self, delta: dict[str, Any]) -> None:
        for name in _TEXTS:
            text = delta.get(name)
            if isinstance(text, list):
                # Words that come as parts.
                text = text_of(text)[0]
            if isinstance(text, str) and text:
                self._keep(self._texts[name], text)
                self._tell(name, text)
        if more := beside(delta):
            self._count(len(json.dumps(more)))
            grown(self._beside, more)
        calls = delta.get("tool_calls") or []
        for piece in calls if isinstance(calls, list) else [calls]:
            if piece is not None:
                self._call(piece)
        if isinstance(legacy := delta.get("function_call"), dict):
            # How functions were called before several could be.
            self._call({"index": 0, "function": legacy})

    def completion(self) -> dict[str, Any]:
        """Return the whole, or the error in its place.

        Raises ModelUnavailable when it broke off, AnswerBroken when an error did that, and ValueError when there was
        nothing.
        """
        if self.is_empty:
            raise ValueError("no chunk")
        if self._fault is not None and self._finish_reason is None:
            if self._is_answered or self._usage:
                raise AnswerBroken(self._fault)
            return self._fault
        # Nothing but what was used: the answer is withheld whole.
        is_withheld = not self._is_answered and has_counts({"usage": self._usage})
        if not (self.done or is_withheld) and self._finish_reason is None:
            raise ModelUnavailable("the model endpoint broke off its answer", unbilled=False)
        if not (self._is_answered or is_withheld):
            raise ValueError("no choice")
        if not self._calls and self._finish_reason in CALLED:
            for piece in self._elsewhere:
                self._call(piece)
        texts = {name: "".join(parts) if parts else None for name, parts in self._texts.items()}
        # Some end with a call of nothing.
        calls = [call.wire() for call in self._in_order() if call.name or call.arguments or call.whole]
        message = {**self._beside, "role": "assistant", **texts, **({"tool_calls": calls} if calls else {})}
        usage = self._usage if self._counts_all or is_withheld else None
        return {"choices": [{"message": message, "finish_reason": self._finish_reason}], "usage": usage}

    def _in_order(self) -> list[_Call]:
        """Return the calls as they are numbered, and those of one number as they came."""
        return [call for _, call in sorted(enumerate(self._calls), key=lambda pair: (pair[1].number, pair[0]))]

    def _call(self, piece: dict[str, Any]) -> None:
        if "function" not in piece:
            piece = as_function({"name": "", **piece})
        index = piece.get("index")
        if not isinstance(index, int) or isinstance(index, bool):
            # Without a number, an id begins a new call.
            last = max(self._numbered, default=-1)
            begins = not self._calls or (piece.get("id") or self._numbered[last].id) != self._numbered[last].id
            index = last + 1 if begins or self._numbered[last].is_over(piece) else last
        call = self._numbered.get(index)
        if call is None or piece.get("id") not in (None, "", call.id):
            call = self._continued(piece) or call
        if any(known.is_repeated(piece, here=known is call) for known in self._calls):
            return
        if call is None or call.is_over(piece):
            call = self._numbered[index] = _Call(number=index)
            self._calls.append(call)
        self._last = self._numbered[index] = call
        arguments = call.add(piece)
        self._count(len(arguments) + 100)
        if call.name == FINISH and not call.is_blank:
            summary = self._summaries.setdefault(id(call), _Summary())
            self._tell(FINISH, summary.add(arguments))

    def _continued(self, piece: dict[str, Any]) -> _Call | None:
        """Return the call that a piece continues under another number, as some count wrongly: it has that call's id.

        Without an id it continues the last call, unless that is whole.
        """
        if _name_in(piece):
            return None
        if given := piece.get("id"):
            return next((call for call in reversed(self._calls) if call.id == given), None)
        return None if self._last is None or self._last.is_whole() else self._last

    def _keep(self, parts: list[str], text: str) -> None:
        self._count(len(text))
        parts.append(text)

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > ANSWER_BYTES:
            raise BodyRefused(f"it answers with more than {ANSWER_BYTES} bytes")

    def _tell(self, what: str, text: str) -> None:
        """Tell what the model says; its words and its summary are told apart by a line break."""
        if text:
            self._say(f"\n{text}" if self._said not in ("", what) else text)
            self._said = what


class Telling:
    """Pass on one answer while it arrives."""

    def __init__(self, deltas: Deltas, ask: AskModel, stream: int, redactor: Redactor) -> None:
        """Mask what this redactor finds."""
        self._deltas = deltas
        self._ask = ask
        self._stream = stream
        self._text = ArrivingText(redactor)
        self._heard = asyncio.Event()
        self.passing = asyncio.Lock()
        """Held while a piece is on its way to the store: a piece that is dropped then is not told again."""

    def say(self, text: str) -> None:
        """Take what the model says next; it is passed on in the background."""
        self._text.add(text)
        self._heard.set()

    async def keep_telling(self) -> None:
        """Pass on the words, until nobody needs it any more."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            # Apart: with thousands of known secrets this takes a moment.
            async with self.passing:
                if not await self._append(await asyncio.to_thread(self._text.ready)):
                    return
            await asyncio.sleep(EVERY_S)

    async def end(self) -> None:
        """Pass on the rest of an answer that has come whole."""
        await self._append(await asyncio.to_thread(self._text.rest))

    async def _append(self, text: str) -> bool:
        return not text or await self._deltas.append(self._ask.run, self._stream, self._ask.step, text)


@contextlib.asynccontextmanager
async def open_telling(deltas: Deltas, ask: AskModel, redactor: Redactor) -> AsyncGenerator[Telling | None]:
    """Yield what passes an answer on, or None where nobody watches; no fault of it reaches the call of the model."""
    stream: int | None = None
    with contextlib.suppress(BackstayError):
        stream = await deltas.begin(ask.run, ask.step)
    if stream is None:
        yield None
        return
    telling = Telling(deltas, ask, stream, redactor)
    working = asyncio.create_task(telling.keep_telling())
    try:
        yield telling
        if not working.done():
            async with telling.passing:
                working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            with contextlib.suppress(BackstayError):
                await telling.end()
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
