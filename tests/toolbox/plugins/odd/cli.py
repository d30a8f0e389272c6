"""A program whose choices and defaults are objects that only it knows."""

import argparse
import datetime as dt
import decimal
import enum
import pathlib
import sys
import typing


class Range:
    """The idiom of question-and-answer sites for a range of floats."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __eq__(self, other):
        return self.low <= other <= self.high

    def __hash__(self):
        return hash((self.low, self.high))

    def __repr__(self):
        return f"{self.low} to {self.high}"


class Even:
    """A container that holds more than it lists."""

    def __contains__(self, value):
        return value % 2 == 0

    def __iter__(self):
        return iter(range(0, 10, 2))


class Anything:
    """Equal to whatever it is compared with."""

    __hash__ = None

    def __eq__(self, other):
        return True


class Broken:
    """A container that cannot be listed."""

    def __contains__(self, value):
        return value == "a"

    def __iter__(self):
        raise RuntimeError("not listed")


class Between(typing.NamedTuple):
    """A container that is a list of its ends."""

    low: float
    high: float

    def __contains__(self, value):
        return self.low <= value <= self.high


class AnyCase(str):
    """A word that is equal to itself in capitals."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return self.casefold() == str(other).casefold()


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def level(name):
    return Level[name]


class Default:
    """A default that is an object of the program."""

    def __repr__(self):
        return "<Default at 0x7f0000000000>"


parser = argparse.ArgumentParser(description="%(prog)s: mix 100 % \udcff")
parser.add_argument("--share", type=float, choices=[Range(0.0, 1.0), Range(5.0, 6.0)], help="A share.")
parser.add_argument("--even", type=int, choices=Even())
parser.add_argument("--between", type=float, choices=Between(0.0, 1.0))
parser.add_argument("--case", choices=[AnyCase("low"), AnyCase("high")])
parser.add_argument("--text", default="a\udcff", help="Not \udcff a text.")
parser.add_argument("--anything", choices=[Anything()])
parser.add_argument("--broken", choices=Broken(), metavar="BROKEN")
parser.add_argument("--color", type=Color, choices=list(Color), default=Color.RED)
parser.add_argument("--kind", type=Color, choices=Color)
parser.add_argument("--level", type=level, choices=list(Level))
parser.add_argument("--day", type=dt.date.fromisoformat, choices=[dt.date(2026, 1, 2)])
parser.add_argument("--amount", type=decimal.Decimal, choices=[decimal.Decimal("0.50"), decimal.Decimal("1.50")])
parser.add_argument("--path", type=pathlib.Path, choices=[pathlib.Path("a/b")], default=pathlib.Path("a/b"))
parser.add_argument("--size", choices={"s": 1, "m": 2}.keys())
parser.add_argument("--step", type=int, choices=range(0, 100, 5))
parser.add_argument("--plain", default=Default(), help="Like %(default)s.")
parser.add_argument("--many", nargs="*", default=[Default()])
parser.add_argument("--set", nargs="*", default={"b", "a"})
parser.add_argument("--ratio", type=float, default=float("nan"))
parser.add_argument("--say", default=None)
given = parser.parse_args()
if given.say is not None:
    print(given.say)
    sys.exit(0)
print({key: str(value) for key, value in sorted(vars(given).items()) if value is not None})
