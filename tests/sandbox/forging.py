"""Forge frames: from honest ones that were damaged to what only somebody who means harm would send."""

import json
import random
from collections.abc import Callable
from typing import Any

from backstay.canonical import canonical
from sandbox.limits import Limits
from sandbox.programs.crash import ProgramCrashed
from sandbox.programs.frames import MOST_DEPTH, RESULT, ProgramCall, ProgramEnd, read_frame

DECLARED = frozenset({"mail.send", "mail.find", "crm.find"})
LIMITS = Limits(frame_bytes=100_000, output_bytes=100_000, calls_per_batch=16)
REFUSALS = {"ProtocolBroken", "NumberLimit", "DepthLimit", "ToolNotFound", "CallLimit", "MemoryLimit"}
LONE = ("\ud800", "\udfff\ud800", "a\udc80")
NUMBERS = ("0", "-0", "1e308", "1e309", "-1e400", "1E+0999", "1e-999", "NaN", "Infinity", "-Infinity", "0x1", "01")
NAMES = (
    *sorted(DECLARED),
    RESULT,
    "engine.run_program",
    "mail.Send",
    "mail.send ",
    "mail",
    "",
    "bank.pay",
    "mail.send\0",
)
TEXTS = ("", "x", "\0", "\u2028", "\U0001f600", "\ufeff", "e" * 300, "[" * 200, "9" * 400, '"', "\\")
BROKEN = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80", b"\xef\xbb\xbf", b"\0", b"\\ud800", b"\\u12")


class Forger:
    """Forge one frame after the other; all follows from the seed."""

    def __init__(self, seed: str) -> None:
        self.dice = random.Random(seed)
        self.first_call = 0
        """The number of the next call, as the host knows it."""

    def frame(self) -> tuple[str, bytes]:
        """Return the kind of forgery, and the frame."""
        self.first_call = self.dice.choice((0, 0, 1, 7, 10**6))
        kind = self.dice.choice(KINDS)
        return kind.__name__, kind(self)

    def honest(self) -> bytes:
        match self.dice.randrange(4):
            case 0:
                told: Any = {"done": {"ok": self.value(plain=True)}}
            case 1:
                line = self.dice.choice((None, 1, 10**20))
                told = {"done": {"error": {"type": "E", "message": "m\n" * self.dice.randrange(900), "line": line}}}
            case _:
                told = {"calls": [self.call(place) for place in range(self.dice.choice((1, 1, 2, 3)))]}
        return _encoded(told, ascii_only=self.dice.random() < 0.5)

    def call(self, place: int) -> dict[str, Any]:
        tool = self.dice.choice((*sorted(DECLARED), RESULT))
        arguments = {"ref": "r"} if tool == RESULT else {self.text(): self.value(plain=True) for _ in range(2)}
        return {"i": self.first_call + place, "tool": tool, "args": arguments}

    def text(self, *, plain: bool = True) -> str:
        return self.dice.choice(TEXTS if plain else (*TEXTS, *LONE))

    def value(self, depth: int = 0, *, plain: bool = False) -> Any:
        dice = self.dice
        match dice.randrange(9 if depth < 3 else 6):
            case 0:
                return dice.choice((None, True, False))
            case 1:
                return dice.choice((0, -1, 1, 2**63, -(2**64), 10**299, 255))
            case 2:
                return dice.choice((0.0, -0.0, 0.1, 1e-320, 1.7976931348623157e308, dice.random()))
            case 3 | 4 | 5:
                return self.text(plain=plain)
            case 6:
                return [self.value(depth + 1, plain=plain) for _ in range(dice.randrange(4))]
            case _:
                return {self.text(plain=plain): self.value(depth + 1, plain=plain) for _ in range(dice.randrange(4))}

    def damaged(self) -> bytes:
        frame, dice = bytearray(self.honest()), self.dice
        for _ in range(dice.randint(1, 6)):
            at = dice.randrange(len(frame) + 1)
            match dice.randrange(5):
                case 0:
                    frame[at : at + 1] = bytes([dice.randrange(256)])
                case 1:
                    del frame[at : at + dice.randint(1, 9)]
                case 2:
                    frame[at:at] = frame[at : at + dice.randint(1, 30)]
                case 3:
                    frame[at:at] = dice.choice(BROKEN)
                case _:
                    frame[at:at] = dice.choice(b'[]{},:"\\0123456789.eE-+ ntfu').to_bytes()
        return bytes(frame)

    def truncated(self) -> bytes:
        frame = self.honest()
        return frame[: self.dice.randrange(len(frame))]

    def spliced(self) -> bytes:
        first, other = self.honest(), self.honest()
        return first[: self.dice.randrange(len(first))] + other[self.dice.randrange(len(other)) :]

    def joined(self) -> bytes:
        between = self.dice.choice((b"", b"\n", b",", b"\0\0\0\x10", b" "))
        return between.join(self.honest() for _ in range(self.dice.randint(2, 5)))

    def noise(self) -> bytes:
        return self.dice.randbytes(self.dice.choice((0, 1, 4, 30, 400)))

    def encoded(self) -> bytes:
        text = self.honest().decode()
        how = self.dice.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7", "cp1252"))
        return text.encode(how, "replace")

    def broken_text(self) -> bytes:
        return self.honest().replace(b"x", self.dice.choice(BROKEN)) + self.dice.choice((b"", *BROKEN))

    def deep(self) -> bytes:
        depth = self.dice.choice((90, 96, 97, 98, 99, 100, 101, 200, 1000, 30_000))
        opening, closing = self.dice.choice((("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")))
        cut = self.dice.choice((depth, depth, depth - 1, 0))
        return self.holding(opening * depth + "1" + closing * cut)

    def number(self) -> bytes:
        dice = self.dice
        digits = dice.choice("19") * dice.choice((1, 17, 198, 199, 200, 250, 299, 300, 301, 309, 4299, 4301))
        point = dice.choice(("", "", "", ".0", "." + "3" * 250))
        exponent = dice.choice(("", "", "e9", "E+99", "e99", "e99", "e-99", "e0099", "e100", "E-400", "e"))
        return self.holding(dice.choice((*NUMBERS, f"{dice.choice(('', '-'))}{digits}{point}{exponent}")))

    def surrogate(self) -> bytes:
        text = json.dumps(self.text(plain=False) + self.dice.choice(("\ud83d", "\ude00\ud83d", "\ud83d\ude00")))
        frame = self.honest().decode()
        place = self.dice.choice(('"x"', '"r"', '"E"', '"mail.send"', '"ref"', '"tool"', '"ok"', "null"))
        return frame.replace(place, text, 1).encode()

    def twice(self) -> bytes:
        """Name a key twice: of whoever reads it, none may see what the host did not."""
        names = self.dice.sample(NAMES, 2)
        tools = ",".join(f'"tool":{json.dumps(name)}' for name in names)
        numbers = self.dice.choice(
            (f'"i":{self.first_call}', f'"i":0,"i":{self.first_call}', f'"i":{self.first_call},"i":9')
        )
        calls = f'"calls":[{{{numbers},{tools},"args":{{}},"args":{{"a":1,"a":2}}}}]'
        before = self.dice.choice(("", '"done":{},', '"calls":[],'))
        return f"{{{before}{calls}}}".encode()

    def misnumbered(self) -> bytes:
        calls = [self.call(place) for place in range(self.dice.randint(1, 4))]
        wrong = (-1, 0, 1, 2, 10**6, 10**300, 0.0, 1.0, True, False, None, "0", [], {}, self.first_call + 1)
        self.dice.choice(calls)["i"] = self.dice.choice(wrong)
        if self.dice.random() < 0.3:
            self.dice.shuffle(calls)
        return _encoded({"calls": calls})

    def unknown(self) -> bytes:
        calls = [self.call(place) for place in range(self.dice.randint(1, 4))]
        self.dice.choice(calls)["tool"] = self.dice.choice((*NAMES, *TEXTS, None, 1, [], {}, ["mail.send"]))
        return _encoded({"calls": calls})

    def shaped(self) -> bytes:
        """Put something else, something more or nothing in one place of an honest frame."""
        told = json.loads(self.honest())
        inner, dice = told, self.dice
        while dice.random() < 0.7 and isinstance(inner, dict | list) and inner:
            key = dice.choice(list(inner)) if isinstance(inner, dict) else dice.randrange(len(inner))
            if not isinstance(inner[key], dict | list):
                break
            inner = inner[key]
        key = dice.choice([*inner, "more"]) if isinstance(inner, dict) else dice.randrange(len(inner) or 1)
        match dice.randrange(3):
            case 0 if isinstance(inner, dict):
                inner[dice.choice(("more", "i", "ok", "error", "calls", "done", ""))] = self.value()
            case 1 if inner and (isinstance(inner, list) or key in inner):
                del inner[key]
            case _ if inner:
                inner[key] = self.value()
            case _:
                return _encoded(self.value())
        return _encoded(told)

    def many(self) -> bytes:
        numbers = range(self.first_call, self.first_call + self.dice.choice((0, 15, 16, 17, 60)))
        return _encoded({"calls": [{"i": number, "tool": "mail.send", "args": {}} for number in numbers]})

    def other(self) -> bytes:
        return _encoded(self.value())

    def holding(self, text: str) -> bytes:
        """Return a frame that holds this text as a value."""
        call = f'{{"calls":[{{"i":{self.first_call},"tool":"mail.send","args":{{"a":VALUE}}}}]}}'
        forms = (call, call.replace('"args":{"a":VALUE}', '"args":VALUE'), '{"done":{"ok":VALUE}}', "VALUE")
        error = '{"done":{"error":{"type":"E","message":"m","line":VALUE}}}'
        number = call.replace(str(self.first_call), "VALUE", 1).replace('{"a":VALUE}', "{}")
        return self.dice.choice((*forms, error, number)).replace("VALUE", text).encode()


KINDS: tuple[Callable[[Forger], bytes], ...] = (
    Forger.honest,
    Forger.damaged,
    Forger.damaged,
    Forger.damaged,
    Forger.truncated,
    Forger.spliced,
    Forger.joined,
    Forger.noise,
    Forger.encoded,
    Forger.broken_text,
    Forger.deep,
    Forger.number,
    Forger.surrogate,
    Forger.twice,
    Forger.misnumbered,
    Forger.unknown,
    Forger.shaped,
    Forger.many,
    Forger.other,
)


def judged(frame: bytes, first_call: int) -> str:
    """Read a frame as the host does, hold what comes of it to every promise, and return what it was taken for."""
    told = _read(frame, first_call)
    if isinstance(told, ProgramCrashed):
        assert told.kind in REFUSALS, told.kind
        assert len(told.message) < 700, told.message
        assert "\n" not in told.message, told.message
        told.message.encode()
        return told.kind
    if isinstance(told, ProgramEnd):
        hold_plain(told.result)
        if told.error is not None:
            assert set(told.error) == {"type", "message"}
            assert all(len(text) < 1400 and "\n" not in text for text in told.error.values())
            assert told.error["type"]
            canonical(told.error).encode()
        return "an end"
    assert 0 < len(told) <= LIMITS.calls_per_batch
    for place, call in enumerate(told):
        assert (type(call.i), call.i) == (int, first_call + place)
        assert call.tool in DECLARED or (call.tool == RESULT and isinstance(call.arguments["ref"], str))
        hold_plain(call.arguments)
    return "calls"


def _read(frame: bytes, first_call: int) -> tuple[ProgramCall, ...] | ProgramEnd | ProgramCrashed:
    try:
        return read_frame(frame, tools=DECLARED, first_call=first_call, limits=LIMITS)
    except ProgramCrashed as refused:
        return refused


def hold_plain(value: Any) -> None:
    """Demand what everything behind the host's reader relies on."""
    text = canonical(value)
    text.encode()
    assert json.loads(text) == value
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        level = [
            part
            for item in level
            for part in (item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
        ]
    assert not level


def _encoded(told: Any, *, ascii_only: bool = True) -> bytes:
    return json.dumps(told, ensure_ascii=ascii_only, separators=(",", ":")).encode("utf-8", "surrogatepass")
