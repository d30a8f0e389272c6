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
import runpy
import sys
from typing import Any

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
        "description": (parser.description or "") % {"prog": parser.prog}
        if "%(prog)" in (parser.description or "")
        else (parser.description or ""),
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
    found = {}
    for name, parser in action.choices.items():
        if all(parser is not known for known, _ in found.values()):
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
        facts["choices"] = [plain(choice) for choice in choices]
    return facts


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
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    known = isinstance(value, (str, int, float, bool, enum.Enum, os.PathLike))
    return plain(value) if known else None


def help_of(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return the help text with its placeholders filled in."""
    if not action.help or action.help == argparse.SUPPRESS:
        return ""
    try:
        return parser._get_formatter()._expand_help(action)
    except (KeyError, TypeError, ValueError):
        return action.help


def main() -> None:
    """Run the plugin as if with `--help`."""
    cli, mark = sys.argv[1:3]

    def capture(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        """Print the parser and exit at once, so that no code after the parsing runs."""
        text = json.dumps(parser_facts(parser), default=str)
        with os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace") as out:
            out.write("\n" + mark + text + "\n")
        os._exit(0)

    for name in ("parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args"):
        setattr(argparse.ArgumentParser, name, capture)
    sys.argv = [cli, "--help"]
    cli = os.path.abspath(cli)
    sys.path[0] = os.path.dirname(cli)
    runpy.run_path(cli, run_name="__main__")


if __name__ == "__main__":
    main()
