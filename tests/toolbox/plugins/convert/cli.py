"""A plugin with every kind of argument; it prints what it was given."""

import argparse
import enum
import json
import os
import sys
from pathlib import Path


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


def arguments():
    parser = argparse.ArgumentParser(description="Convert %(prog)s files.", fromfile_prefix_chars="@")
    parser.add_argument("source", type=Path, help="what to read")
    parser.add_argument("extra", nargs="*", help="what else to read")
    parser.add_argument("-n", "--count", type=int, default="3", choices=range(1, 100), help="how many, %(default)s")
    parser.add_argument("--ratio", type=float, required=True)
    parser.add_argument("--color", type=Color, choices=list(Color), default=Color.RED)
    parser.add_argument("--level", choices=["low", "high"])
    parser.add_argument("--pair", nargs=2, type=int)
    parser.add_argument("--names", nargs="+", default=["a"])
    parser.add_argument("--tag", action="append")
    parser.add_argument("--point", action="append", nargs=2, type=float)
    parser.add_argument("--more", action="extend", nargs="+")
    parser.add_argument("--log", nargs="?", const="all")
    parser.add_argument("--no-store", dest="store", action="store_false")
    parser.add_argument("--cache", action=argparse.BooleanOptionalAction, dest="caching")
    parser.add_argument("-v", action="count", default=0)
    parser.add_argument("--filter", type=json.loads)
    parser.add_argument("--strict", type=bool)
    parser.add_argument("--secret", help=argparse.SUPPRESS)
    parser.add_argument("--key", default=os.environ.get("CONVERT_KEY"), help="%(default)s")
    parser.add_argument("--version", action="version", version="1")
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--fast", action="store_true")
    either.add_argument("--within", type=int)
    return parser.parse_args()


def main():
    given = vars(arguments())
    Path("ran").write_text("this must not happen while the parser is captured", encoding="utf-8")
    print(json.dumps(given, default=lambda value: getattr(value, "value", None) or str(value)))


if __name__ == "__main__":
    print("a word before the parser", file=sys.stderr)
    main()
