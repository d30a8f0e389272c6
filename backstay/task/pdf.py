"""Count the pages of a PDF, and the text that they can show, without trusting what it says of itself.

A reservation rests on these numbers, and a stranger may have written the file. So what readers may take in different
ways, such as a page that is in two places, or objects in a stream that cannot be read, is refused.
"""

import base64
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

INFLATED = 32_000_000
"""How many bytes the streams that are read may have together."""
MOST_TEXT = 1_000_000_000
_MOST_OBJECTS, _MOST_STEPS, _MOST_STRINGS = 150_000, 100_000, 100_000
_DEEPEST = 50
_SPACE = rb"[\x00\t\n\x0c\r ]"
_END = rb"(?![^\x00\t\n\x0c\r ()<>\[\]{}/%])"
_REF = rb"(\d{1,10})" + _SPACE + rb"++\d{1,10}" + _SPACE + rb"++R" + _END
_WORD = re.compile(rb"obj|stream")
_HEAD = re.compile(rb"(?<!\d)(\d{1,10})" + _SPACE + rb"++\d{1,10}" + _SPACE + rb"++\Z")
_WINDOW = 64
"""How many bytes before an object's first word its number is in."""
_BREAK = re.compile(rb" {0,16}(?:\r\n|\n|\r)")
_NAME = re.compile(rb"/[^\x00\t\n\x0c\r ()<>\[\]{}/%]*#[^\x00\t\n\x0c\r ()<>\[\]{}/%]*")
_ESCAPE = re.compile(rb"#([0-9A-Fa-f]{2})")
_OPENS, _INSIDE = re.compile(rb"[()%]"), re.compile(rb"\\.|[()]", re.DOTALL)
_DICTIONARY, _HEX = re.compile(rb"<<|>>"), re.compile(rb"<[^>]*>?")
_REFS = re.compile(_REF)
_LIST = re.compile(rb"(?:" + _SPACE + rb"+|" + _REF + rb")*")
_DO = re.compile(rb"\bDo\b")
_LISTED = _SPACE + rb"*(?:\[([^\[\]]*)\]|" + _REF + rb")"
_KIDS, _CONTENTS = re.compile(rb"/Kids" + _LISTED), re.compile(rb"/Contents" + _LISTED)
_ROOT = re.compile(rb"/Pages" + _SPACE + rb"*" + _REF)
_NODE, _PAGES = re.compile(rb"/Type" + _SPACE + rb"*/Pages" + _END), re.compile(rb"/Pages" + _END)
_TO_UNICODE = re.compile(rb"/ToUnicode" + _SPACE + rb"*" + _REF)
_FILTER = re.compile(rb"/Filter" + _SPACE + rb"*(?:\[([^\[\]]*)\]|(/[A-Za-z0-9]+))")
_UNITS = 3
"""For how many characters one byte of text may be written before these count, such as for a ligature."""
_CHUNK = 4_096


class PdfRefusedError(Exception):
    """Say why the pages of a PDF, or their text, cannot be counted."""


class PdfExtent(NamedTuple):
    """Hold how large a PDF is to a model."""

    pages: int
    text: int
    """Bytes of text that its pages can show at most."""


class _Object(NamedTuple):
    """Hold one definition of an object: what is in it without its strings, their bytes, and where a stream begins.

    Strings are taken out, since they may hold whatever is looked for.
    """

    body: bytes
    strings: int
    is_whole: bool
    stream: int = -1

    def has(self, name: bytes) -> bool:
        """Return whether a name is in it."""
        return name in self.body and re.search(rb"/" + name + _END, self.body) is not None

    def number(self, name: bytes) -> int | None:
        """Return the number after a name; None where that is none."""
        found = re.search(rb"/" + name + _SPACE + rb"+(\d{1,10})" + _END + rb"(?!" + _SPACE + rb"+\d+ +R)", self.body)
        return None if found is None else int(found[1])


class _Token(NamedTuple):
    """Hold where the definition of an object begins, which then has a number, or where it ends."""

    start: int
    end: int
    number: int = -1
    is_stream: bool = False


class _StreamText(NamedTuple):
    """Hold how much text one stream shows by itself, and how often it draws something else."""

    text: int
    draws: int
    is_whole: bool
    size: int


def extent_of(data: bytes) -> PdfExtent:
    """Return how many pages a PDF has, and how much text; raises PdfRefusedError, saying why, where that is unsure."""
    objects = _Objects(data)
    return PdfExtent(_pages(objects), _Text(objects).all())


class _Objects:
    """Read all objects of a file, whatever it says about where they are."""

    def __init__(self, data: bytes) -> None:
        self.data, self.left, self.count = data, INFLATED, 0
        self.found: dict[int, list[_Object]] = {}
        number, start = -1, 0
        for place, word in enumerate(_WORD.finditer(data)):
            if place > 4 * _MOST_OBJECTS:
                raise PdfRefusedError(f"it has more than {_MOST_OBJECTS:,} objects")
            token = self._token(word)
            if token is None:
                continue
            if number >= 0:
                self._keep(number, data[start : token.start], token.end if token.is_stream else -1)
            number, start = token.number, token.end
        for each in [each for each in self.every() if each.stream >= 0 and each.has(b"ObjStm")]:
            self._unpack(each)

    def _token(self, word: re.Match[bytes]) -> _Token | None:
        """Return where an object begins or ends; raises PdfRefusedError where that is unclear."""
        before, start, end = self.data[max(0, word.start() - _WINDOW) : word.start()], word.start(), word.end()
        if word[0] == b"stream":
            line = None if before.endswith(b"end") else _BREAK.match(self.data, end)
            return None if line is None else _Token(start, line.end(), is_stream=True)
        if before.endswith(b"end"):
            return _Token(start - 3, end)
        if before[-1:] not in {b"\0", b"\t", b"\n", b"\f", b"\r", b" "} or self.data[end : end + 1].isalpha():
            return None
        head = _HEAD.search(before)
        if head is None:
            # Readers may take a comment there, or more blanks.
            raise PdfRefusedError("the head of an object is unclear")
        return _Token(start - len(before) + head.start(), end, int(head[1]))

    def every(self) -> Iterator[_Object]:
        """Return every definition of every object."""
        return (each for defined in self.found.values() for each in defined)

    def named(self, number: int) -> Sequence[_Object]:
        """Return all definitions of an object, one of which counts; raises PdfRefusedError where it has none."""
        found = self.found.get(number, ())
        if not found or not all(each.is_whole for each in found):
            raise PdfRefusedError(f"its object {number} {'has no clear end' if found else 'is missing'}")
        return found

    def _keep(self, number: int, written: bytes, stream: int = -1) -> None:
        self.count += 1
        if self.count > _MOST_OBJECTS:
            raise PdfRefusedError(f"it has more than {_MOST_OBJECTS:,} objects")
        body, strings, closed = _without_strings(written, comments=True)
        if b"#" in body:
            body = _NAME.sub(lambda name: _ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), name[0]), body)
        whole = closed and body.count(b"[") == body.count(b"]") and body.count(b"<<") == body.count(b">>")
        self.found.setdefault(number, []).append(_Object(body, strings, whole, stream))

    def _unpack(self, packed: _Object) -> None:
        """Read the objects that are in a stream."""
        content, first = self.inflated(packed), packed.number(b"First")
        head = content[: first or 0].split()
        if first is None or packed.has(b"DecodeParms") or len(head) % 2 or not all(map(bytes.isdigit, head)):
            raise PdfRefusedError("objects are in a stream that cannot be read")
        numbers, places = [int(word) for word in head[::2]], [first + int(word) for word in head[1::2]]
        if any(after <= before for before, after in pairwise(places)):
            raise PdfRefusedError("objects are in a stream in no order")
        for number, start, end in zip(numbers, places, [*places[1:], len(content)], strict=True):
            self._keep(number, content[start:end])

    def inflated(self, packed: _Object) -> bytes:
        """Return what a stream holds; raises PdfRefusedError where that cannot be read, or is too much."""
        filters = _filters(packed)
        if packed.number(b"Length") is None and not filters and packed.has(b"Length"):
            length = self._length(packed)
        else:
            length = packed.number(b"Length") or 0
        end = max(self.data.find(b"endstream", packed.stream), packed.stream + length)
        content, place = b"", packed.stream
        try:
            for position, name in enumerate(filters):
                source = self.data if position == 0 else content
                content = self._decoded(name, source, place if position == 0 else 0)
        except (zlib.error, ValueError):
            raise PdfRefusedError("a stream of it cannot be read") from None
        content = content if filters else self.data[place:end]
        self.left -= len(content)
        if self.left < 0:
            raise PdfRefusedError(f"its streams inflate to more than {INFLATED:,} bytes")
        return content

    def _length(self, packed: _Object) -> int:
        """Return the greatest length that an object says which the stream names as its own."""
        found = re.search(rb"/Length" + _SPACE + rb"*" + _REF, packed.body)
        said = self.named(int(found[1])) if found else ()
        numbers = [int(each.body) if each.body.strip(b"\0\t\n\f\r ").isdigit() else len(self.data) for each in said]
        return max(numbers, default=len(self.data))

    def _decoded(self, name: bytes, source: bytes, place: int) -> bytes:
        match name:
            case b"FlateDecode":
                return self._inflate(source, place)
            case b"ASCII85Decode":
                end = source.find(b"~>", place)
                written = source[place : end if end >= 0 else len(source)]
                return base64.a85decode(written.removeprefix(b"<~"), ignorechars=b"\0\t\n\f\r ")
            case b"ASCIIHexDecode":
                end = source.find(b">", place)
                return bytes.fromhex(source[place : end if end >= 0 else len(source)].decode("ascii"))
            case _:
                raise PdfRefusedError(f"text or objects of it are compressed as {name.decode('ascii')}")

    def _inflate(self, source: bytes, place: int) -> bytes:
        reader, parts, left = zlib.decompressobj(), list[bytes](), self.left + 1
        while not reader.eof and left > 0:
            given = reader.unconsumed_tail or source[place : place + _CHUNK]
            place += 0 if reader.unconsumed_tail else _CHUNK
            if not given:
                raise PdfRefusedError("a stream of it has no end")
            parts.append(reader.decompress(given, left))
            left -= len(parts[-1])
        return b"".join(parts)


def _filters(packed: _Object) -> list[bytes]:
    found = _FILTER.findall(packed.body)
    if not found and not packed.has(b"Filter"):
        return []
    if len(found) != 1:
        raise PdfRefusedError("a stream of it does not say how it is compressed")
    return re.findall(rb"/([A-Za-z0-9]+)", b" ".join(found[0]))


def _without_strings(written: bytes, *, comments: bool) -> tuple[bytes, int, bool]:
    """Return what is outside of strings, how many bytes these have, and whether each of them has an end.

    `comments`: whether there may be any. In what is drawn `%` may be a byte of a picture.
    """
    outside, inside, place = list[bytes](), 0, 0
    if written.count(b"(") > _MOST_STRINGS:
        return written, len(written), False
    while (opens := _OPENS.search(written, place)) is not None:
        if opens[0] == b"%":
            end = re.compile(rb"[\r\n]|\Z").search(written, opens.end()) if comments else opens
            outside.append(written[place : opens.start() if comments else opens.end()])
            place = opens.end() if end is None else max(end.start(), opens.end())
            continue
        if opens[0] == b")":
            # Its beginning is in an earlier stream.
            return b"".join(outside), len(written), False
        outside.append(written[place : opens.start()])
        depth, place = 1, opens.end()
        while depth and (sign := _INSIDE.search(written, place)) is not None:
            depth += {b"(": 1, b")": -1}.get(sign[0], 0)
            place = sign.end()
        if depth:
            return b"".join(outside), len(written), False
        inside += place - opens.end()
    return b"".join([*outside, written[place:]]), inside, True


def _pages(objects: _Objects) -> int:
    """Return how many pages the page trees have; raises PdfRefusedError where they may be counted in several ways."""
    roots = {root for each in objects.every() for root in _roots(each)}
    above, waiting, pages, counts = dict.fromkeys(roots, 0), list(roots), 0, list[int]()
    while waiting:
        number = waiting.pop()
        kinds = objects.named(number)
        nodes = [each for each in kinds if each.has(b"Kids")]
        # It is a page as well where another definition of it is none of the tree.
        pages += len(nodes) < len(kinds) and number not in roots
        counts += [each.number(b"Count") or 0 for each in nodes if number in roots]
        for kid in {kid for each in nodes for kid in _kids(objects, number, each)}:
            if above.setdefault(kid, number) != number:
                raise PdfRefusedError(f"its page {kid} is in two places")
            waiting.append(kid)
    if not pages:
        raise PdfRefusedError("it has no page tree")
    if len(counts) == 1 and counts[0] != pages:
        raise PdfRefusedError(f"it says that it has {counts[0]:,} pages, and has {pages:,}")
    return max(pages, *counts, 0)


def _roots(said: _Object) -> list[int]:
    """Return which page trees an object names."""
    found = _ROOT.findall(said.body) if b"/Pages" in said.body else []
    if b"/Pages" in said.body and len(_PAGES.findall(said.body)) != len(_NODE.findall(said.body)) + len(found):
        raise PdfRefusedError("the place of its page tree is unclear")
    return [int(number) for number in found]


def _kids(objects: _Objects, number: int, node: _Object) -> list[int]:
    """Return what is below a node of a page tree."""
    said = _KIDS.findall(node.body)
    if len(said) != 1:
        raise PdfRefusedError(f"object {number} of its page tree has no clear list")
    listed, ref = said[0][:2]
    lists = [each.body.strip(b"\0\t\n\f\r []") for each in objects.named(int(ref))] if ref else [listed]
    kids = [[int(kid) for kid in _REFS.findall(each)] for each in lists]
    if any(_LIST.fullmatch(each) is None for each in lists) or any(len(set(each)) != len(each) for each in kids):
        raise PdfRefusedError(f"object {number} of its page tree lists a page twice, or something else")
    return [kid for each in kids for kid in each]


class _Text:
    """Count how much text the pages can show."""

    def __init__(self, objects: _Objects) -> None:
        self.objects = objects
        self.steps = 0
        self.known: dict[int, _StreamText] = {}
        self.drawn: dict[int, int] = {}
        self.forms = {
            number: [each for each in defined if each.stream >= 0 and (each.has(b"Form") or each.has(b"PatternType"))]
            for number, defined in objects.found.items()
        }
        self.forms = {number: defined for number, defined in self.forms.items() if defined}

    def all(self) -> int:
        """Return the bytes of all text, each as often as it may be shown."""
        pages = [shown for each in self.objects.every() for shown in self._of_page(each)]
        forms = [self._of_form(number, ()) for number in self.forms]
        draws = sum(shown.draws for shown in pages)
        text = sum(shown.text for shown in pages) + sum(forms) + draws * max(forms, default=0)
        known = [*self.known.values()]
        if not all(shown.is_whole for shown in known):
            # A string may go on from one stream to the next.
            text = max(text, sum(shown.size for shown in known))
        # A signature is not text.
        beside = [each for each in self.objects.every() if not each.has(b"ByteRange")]
        said = sum(each.strings + sum(map(len, _hexes(each.body))) // 2 for each in beside)
        return min(text * self._characters() + said, MOST_TEXT)

    def _of_page(self, page: _Object) -> Iterator[_StreamText]:
        for listed, ref, *_ in _CONTENTS.findall(page.body) if b"/Contents" in page.body else []:
            for number in [ref] if ref else _REFS.findall(listed):
                yield from self._streams(int(number), listed=bool(listed))

    def _streams(self, number: int, *, listed: bool) -> Iterator[_StreamText]:
        """Return what a page names as its content: a stream, or a list of them, which holds no further list."""
        for each in self.objects.named(number):
            self._step()
            refs = _REFS.findall(each.body) if each.stream < 0 else []
            if each.stream >= 0:
                yield self._shown(each)
            elif refs and listed:
                raise PdfRefusedError("the content of its pages is nested too deeply")
            for below in refs:
                yield from self._streams(int(below), listed=True)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise PdfRefusedError("its pages are put together of too many parts")

    def _of_form(self, number: int, above: tuple[int, ...]) -> int:
        """Return how much text something shows that pages draw, with what it draws in turn."""
        if number in above or len(above) > _DEEPEST:
            raise PdfRefusedError("what its pages draw draws itself")
        if number not in self.drawn:
            shown = [self._shown(each) for each in self.forms[number]]
            draws = sum(each.draws for each in shown)
            below = self._below(number) if draws else set[int]()
            most = max((self._of_form(each, (*above, number)) for each in below), default=0)
            self.drawn[number] = min(sum(each.text for each in shown) + draws * most, MOST_TEXT)
        return self.drawn[number]

    def _below(self, number: int) -> set[int]:
        """Return which others something can draw: those that are named from it, also through what has no stream."""
        found, seen, waiting = set[int](), {number}, list(self.forms[number])
        while waiting:
            for below in {int(ref) for ref in _REFS.findall(waiting.pop().body)} - seen:
                self._step()
                seen.add(below)
                if below in self.forms:
                    found.add(below)
                waiting += [each for each in self.objects.found.get(below, ()) if each.stream < 0]
        return found

    def _shown(self, packed: _Object) -> _StreamText:
        if packed.stream not in self.known:
            content = self.objects.inflated(packed)
            outside, strings, closed = _without_strings(content, comments=False)
            hexes = _hexes(outside)
            text = len(content) if packed.has(b"DecodeParms") else strings + sum(map(len, hexes)) // 2
            closed = closed and all(found.endswith(b">") for found in hexes)
            self.known[packed.stream] = _StreamText(text, len(_DO.findall(outside)), closed, len(content))
        return self.known[packed.stream]

    def _characters(self) -> int:
        """Return for how many characters one byte of text may be written, as fonts say."""
        fonts = [each.body for each in self.objects.every() if b"/ToUnicode" in each.body]
        maps = {int(number) for font in fonts for number in _TO_UNICODE.findall(font)}
        streams = [each for number in maps for each in self.objects.found.get(number, ()) if each.stream >= 0]
        digits = (len(code) for each in streams for code in _hexes(self.objects.inflated(each)))
        return -(-max(digits, default=0) // (4 * _UNITS + 2)) or 1


def _hexes(written: bytes) -> list[bytes]:
    """Return the strings that are written in hexadecimal, with their brackets."""
    return _HEX.findall(_DICTIONARY.sub(b" ", written))
