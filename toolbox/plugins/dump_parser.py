"""Run a plugin until it parses its command line; then print its parser instead of parsing, and exit.

This file runs in the plugin's own interpreter with `-c`. That interpreter may be old, so the file uses only old syntax
and the standard library. argv: the plugin's cli.py, and the mark that is printed before the parser.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportPrivateUsage=false
# A parser keeps its arguments in private attributes, whose names differ between versions.

from __future__ import annotations

import argparse
import enum
import json
import os
import re
import runpy
import sys
from collections import OrderedDict
from types import GeneratorType, MappingProxyType
from typing import Any

MOST_CHOICES = 1001
MOST_SHOWN = 50
LISTED = (
    *(list, tuple, set, frozenset, range, str, dict, OrderedDict, MappingProxyType, type({}.keys()), type({}.values())),
    *(type(enum.Enum), GeneratorType),
)
COMPARED = (str.__eq__, int.__eq__, float.__eq__)
KINDS = (
    ("_HelpAction", None),
    ("_VersionAction", None),
    ("_SubParsersAction", None),
    ("BooleanOptionalAction", "boolean"),
    ("_AppendConstAction", "const"),
    ("_StoreConstAction", "const"),
    ("_CountAction", "count"),
    ("_ExtendAction", "extend"),
    ("_AppendAction", "append"),
)


def parser_facts(parser: argparse.ArgumentParser, summary: str | None = "") -> dict[str, Any]:
    """Return the facts about a parser and its subcommands."""
    actions = [
        action
        for action in parser._actions
        if kind_of(action) is not None and (action.required or action.help != argparse.SUPPRESS)
    ]
    commands = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {
        "summary": summary or "",
        "description": description_of(parser),
        "prefixes": parser.prefix_chars,
        "number_options": bool(parser._has_negative_number_optionals),
        "file_prefixes": parser.fromfile_prefix_chars or "",
        "arguments": [action_facts(parser, action) for action in actions],
        "exclusive": [
            {
                "members": [actions.index(action) for action in group._group_actions if action in actions],
                "required": bool(group.required),
            }
            for group in parser._mutually_exclusive_groups
        ],
        "commands": command_facts(commands[0]) if commands else {},
    }


def command_facts(action: Any) -> dict[str, Any]:
    """Return the parsers of the subcommands by their first names; the others are aliases."""
    summaries = {choice.dest: choice.help for choice in action._choices_actions}
    hidden = [action.choices.get(name) for name, said in summaries.items() if said == argparse.SUPPRESS]
    found = {}
    for name, parser in action.choices.items():
        if all(parser is not known for known in [*hidden, *(known for known, _ in found.values())]):
            found[name] = (parser, summaries.get(name))
    return {name: parser_facts(parser, summary) for name, (parser, summary) in found.items()}


def kind_of(action: argparse.Action) -> str | None:
    """Return how an argument is written on the command line; None for those that only print something."""
    for name, kind in KINDS:
        known = getattr(argparse, name, None)
        if known is not None and isinstance(action, known):
            return kind
    if action.option_strings and action.nargs == 0:
        return "const"
    return "store"


def action_facts(parser: argparse.ArgumentParser, action: argparse.Action) -> dict[str, Any]:
    """Return the facts about one argument."""
    kind = kind_of(action)
    facts = {
        "kind": kind,
        "dest": str(action.dest),
        "options": [str(option) for option in action.option_strings],
        "nargs": action.nargs,
        "type": type_of(action),
        "required": bool(action.required),
        "help": help_of(parser, action),
        "default": default_of(action) if kind not in ("const", "boolean", "count") else None,
    }
    choices = action.choices
    if isinstance(choices, range) and choices.step == 1 and len(choices):
        facts["span"] = [choices.start, choices.stop - 1]
    elif choices is not None:
        known = choices_of(choices, action.type)
        if known is None:
            said = words_for(choices)
            facts["help"] = (facts["help"] + " (one of: " + said + ")").strip() if said else facts["help"]
        else:
            facts["choices"] = known
    return facts


def choices_of(choices: Any, converter: Any) -> list[Any] | None:
    """Return the values among which an argument is chosen; None where only the program itself can tell.

    A choice may be an object that is equal to many values, and a container may hold more than it lists.
    """
    if type(choices) not in LISTED:  # a class of the program's own may hold more than it lists
        return None
    found = []
    try:
        for choice in choices:
            value = word_for(choice, converter)
            if value is None or len(found) == MOST_CHOICES:
                return None
            found.append(value)
    except Exception:  # the program's own classes: they may do anything
        return None
    return found or None


def word_for(choice: Any, converter: Any) -> Any:
    """Return what is written for a choice, as a JSON scalar; None if that cannot be told."""
    if isinstance(choice, (str, int, float)) and type(choice).__eq__ not in COMPARED:
        return None
    if not isinstance(choice, enum.Enum):
        return choice if isinstance(choice, (str, int, float, bool)) else written_as(choice, converter)
    value = choice.value
    known = isinstance(value, (str, int, float, bool)) and reads(converter, str(value), choice)
    return value if known else written_as(choice, converter)


def written_as(choice: Any, converter: Any) -> str | None:
    """Return the word that the program reads as this choice; None if that cannot be told."""
    for word in (str(choice), getattr(choice, "name", None)):
        if isinstance(word, str) and reads(converter, word, choice):
            return word
    return None


def reads(converter: Any, word: str, choice: Any) -> bool:
    """Return whether the program turns a word into a choice that is equal to this one, and to nothing else."""
    try:
        nothing = object()
        read = word if converter is None else converter(word)
        return bool(read == choice) and bool(choice == read) and not bool(choice == nothing)
    except Exception:  # the program's own function: it may do anything
        return False


def words_for(choices: Any) -> str:
    """Return what a person would read about choices that cannot be listed."""
    try:
        listed = isinstance(choices, (list, tuple, set, frozenset, dict)) and len(choices) <= MOST_SHOWN
        return without_addresses(", ".join(str(choice) for choice in choices)) if listed else ""
    except Exception:  # the program's own classes: they may do anything
        return ""


def type_of(action: argparse.Action) -> str:
    """Return the JSON type that a converter reads; text for an unknown converter."""
    named = {int: "integer", float: "number", bool: "boolean", json.loads: "json"}
    try:
        return named.get(action.type, "string")
    except TypeError:
        return "string"


def plain(value: Any) -> Any:
    """Return a value as a JSON scalar."""
    if isinstance(value, enum.Enum):
        value = value.value
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def default_of(action: argparse.Action) -> Any:
    """Return the default with the type of the argument, or None if JSON cannot express it."""
    value = action.default
    if value is None or value is argparse.SUPPRESS:
        return None
    if isinstance(value, str) and action.type in (int, float):
        try:
            return action.type(value)
        except ValueError:
            return None
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [plain(item) for item in items] if all(is_plain(item) for item in items) else None
    return plain(value) if is_plain(value) else None


def is_plain(value: Any) -> bool:
    """Return whether a default is a value that JSON can hold, and no object that only the program knows."""
    if isinstance(value, float):
        return value - value == 0
    is_known = isinstance(value, (str, int, bool, enum.Enum, os.PathLike))
    return is_known and re.search(r"[\ud800-\udfff]", str(plain(value))) is None


def help_of(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return the help text with its placeholders filled in."""
    if not action.help or action.help == argparse.SUPPRESS:
        return ""
    try:
        return without_addresses(parser._get_formatter()._expand_help(action))
    except (KeyError, TypeError, ValueError):
        return action.help


def description_of(parser: argparse.ArgumentParser) -> str:
    """Return the description with its placeholders filled in."""
    text = parser.description or ""
    try:
        return text % {"prog": parser.prog} if "%(prog)" in text else text
    except (KeyError, TypeError, ValueError):
        return text.replace("%(prog)s", parser.prog)


def without_addresses(text: str) -> str:
    """Return a string without the places of objects in memory, which differ each time the program is described."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", text)


class Capture:
    """Take the place of parsing: print the parser that reads the command line, and let nothing run behind it.

    A parser without a `--help` of its own that leaves words over is not yet that one: the words go on to another
    parser, or to something else that prints the help. Only in a jail does the program go on, since this may run its
    work. Each parser is printed at once, and the last one counts.
    """

    def __init__(self, mark: str, *, jailed: bool) -> None:
        self.mark = mark
        self.jailed = jailed
        self.earlier: list[argparse.ArgumentParser] = []
        """The parsers that read the command line and left words to others, in order."""
        self.is_parsing = False

    def replace(self, name: str) -> None:
        """Take the place of one method of every parser."""
        original = getattr(argparse.ArgumentParser, name)

        def parse(parser: argparse.ArgumentParser, *args: Any, **options: Any) -> Any:
            if self.is_parsing:
                return original(parser, *args, **options)
            leaves = "known" in name and not parser.add_help
            if leaves and self.jailed:
                self.is_parsing = True
                try:
                    parsed = original(parser, *args, **options)
                except SystemExit:  # it demands words that `--help` does not give
                    parsed = None
                finally:
                    self.is_parsing = False
                if parsed is not None:
                    words = args[0] if args else options.get("args")
                    if "--help" in (sys.argv[1:] if words is None else words):
                        self.show(parser, went_on=True)
                        self.earlier.append(parser)
                    return parsed
            self.show(parser, read_twice="intermixed" in name, others_unseen=leaves and not self.jailed)
            os._exit(0)  # so that no code after the parsing runs

        setattr(argparse.ArgumentParser, name, parse)

    def show(self, parser: argparse.ArgumentParser, **more: bool) -> None:
        """Print the facts about a parser, and what the earlier ones would make of the words on their way to it."""
        facts = {**parser_facts(parser), **more}
        for earlier in self.earlier:
            facts["prefixes"] += earlier.prefix_chars
            facts["file_prefixes"] += earlier.fromfile_prefix_chars or ""
            facts["number_options"] = facts["number_options"] or bool(earlier._has_negative_number_optionals)
            facts["read_twice"] = True
        with os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace") as out:
            out.write("\n" + self.mark + json.dumps(facts, default=str, ensure_ascii=False) + "\n")


def main() -> None:
    """Run the plugin as if with `--help`."""
    cli, mark, where = sys.argv[1:4]
    capture = Capture(mark, jailed=where == "jail")
    for name in ("parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args"):
        capture.replace(name)
    sys.argv = [cli, "--help"]
    cli = os.path.abspath(cli)
    sys.path[0] = os.path.dirname(cli)
    runpy.run_path(cli, run_name="__main__")


if __name__ == "__main__":
    main()
