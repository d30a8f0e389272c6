"""Let a person change the arguments of a call, and show what they changed."""

import asyncio
import json
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.layout import changed_lines
from backstay.client import Run
from backstay.errors import BackstayError, DecisionRefused
from backstay.shown import is_visible, one_line, shown_arguments
from backstay.yaml_text import read_yaml, written
from gateways.terminal.terminal import Terminal

_ALL = 10_000_000


class Detached(BackstayError):
    """The person detached, or the input has ended; the run continues."""


async def edited(terminal: Terminal, run: Run, request: ApprovalRequest, editor: str | None) -> Any:
    """Let the person change the arguments of a call; return what they changed.

    In an editor they are given whole, with nothing clipped or written out for the screen, and one that is deleted
    there is left out. Raises DecisionRefused when the text cannot be used.
    """
    from people.requests.editing import edit_in_json

    call = await _chosen(terminal, request.calls, "call" if request.proposal is None else "step")
    before = await run.arguments(request.id, call.index)
    typed = await (_in_editor(editor, call.tool, before) if editor else _in_line(terminal, call))
    # Typed in one line are only the new values; in an editor stands all of it.
    edit = edit_in_json(call.index, before, typed, whole=bool(editor))
    terminal.show((line, "cyan") for line in differences(before, edit.arguments, edit.without))
    return edit


def differences(before: dict[str, Any], changed: dict[str, Any], gone: Sequence[str] = ()) -> list[str]:
    """Return what differs once these arguments are changed, or gone, as lines for people."""
    kept = {name: value for name, value in before.items() if name in changed or name in gone}
    shown = [shown_arguments(arguments, _ALL).arguments for arguments in (kept, changed)]
    return [f"  {line}" for line in changed_lines(*shown)]


class _Dumper(yaml.SafeDumper):
    """Write texts of several lines as they are read."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


class _Loader(yaml.SafeLoader):
    """Read only what JSON has as something else than text: `no`, `12:30` and `2026-01-01` are what was typed."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"(?:null|~|)", ["n", "~", ""]),
    ("bool", r"(?:true|false)", ["t", "f"]),
    ("int", r"-?(?:0|[1-9][0-9]*)", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", list("-0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^{_pattern}$"), _first)


def arguments_as_yaml(arguments: dict[str, Any]) -> str:
    """Return YAML in which every character can be seen, an argument after the other."""
    return "".join(map(_written, arguments, arguments.values()))


def _written(name: str, value: Any) -> str:
    text = yaml.dump({name: value}, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000)
    if is_visible(text) and _read(text) == {name: value}:
        return text
    return f"{written(name)}: {written(value)}\n"


def arguments_in_yaml(text: str) -> Any:
    """Return what is in YAML; raises DecisionRefused, with line and column, for what cannot be read."""
    try:
        return _read(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DecisionRefused(f"arguments: {one_line(str(error), 300)}; nothing was changed") from None


def _read(text: str) -> Any:
    return read_yaml(text, _Loader)


async def _chosen(terminal: Terminal, calls: tuple[RequestedCall, ...], name: str) -> RequestedCall:
    if len(calls) == 1:
        return calls[0]
    typed = await terminal.ask(f"which {name}? number:")
    if typed is None:
        raise Detached
    found = next((call for call in calls if str(call.index) == typed), None)
    if found is None:
        raise DecisionRefused(f"{name}: no {name} {typed!r} waits for approval; nothing was changed")
    return found


async def _in_line(terminal: Terminal, call: RequestedCall) -> str:
    names = ", ".join(call.arguments)
    typed = await terminal.ask(f'new values as JSON, such as {{"name": "value"}}; names: {names}:')
    if typed is None:
        raise Detached
    return typed or "{}"


async def _in_editor(editor: str, tool: str, arguments: dict[str, Any]) -> str:
    about = f"# {one_line(tool, 200)}: change the arguments, save, and close; one that you delete is left out.\n"
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        file = Path(folder) / "arguments.yaml"
        file.write_text(about + arguments_as_yaml(arguments), encoding="utf-8")
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(editor), str(file))
        except (OSError, ValueError) as error:
            raise DecisionRefused(f"EDITOR: {editor!r} cannot be started: {type(error).__name__}") from None
        if await process.wait() != 0:
            raise DecisionRefused("the editor failed; nothing was changed")
        return json.dumps(arguments_in_yaml(file.read_text(encoding="utf-8")))
