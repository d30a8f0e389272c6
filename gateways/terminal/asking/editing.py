"""Let a person change the arguments of a call, and show what they changed."""

import asyncio
import json
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
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


async def edited(terminal: Terminal, run: Run, request: ApprovalRequest, editor: str | None) -> tuple[Any, ...]:
    """Let the person name calls and change their arguments; return what they changed.

    Raises DecisionRefused when the text cannot be used.
    """
    return await edits_of(terminal, run, request.id, await _chosen(terminal, request), editor)


async def edits_of(
    terminal: Terminal, run: Run, request_id: str, calls: Sequence[RequestedCall], editor: str | None
) -> tuple[Any, ...]:
    """Let the person change the arguments of calls; of several, some may stay as they are.

    In an editor they are given whole, with nothing clipped or written out for the screen, and one that is deleted
    there is left out. Raises DecisionRefused when the text cannot be used, or nothing was changed.
    """
    from people.requests.editing import NothingChanged, edit_in_json

    before = {call.index: await run.arguments(request_id, call.index) for call in calls}
    whole = {} if not editor else await _in_editor(editor, calls, before)
    edits: list[Any] = []
    for call in calls:
        was = before[call.index]
        try:
            if editor:
                edit = edit_in_json(call.index, was, whole[call.index], whole=True)
            else:
                edit = await _in_line(terminal, call, was, again=len(calls) > 1)
        except NothingChanged:
            continue
        if len(calls) > 1:
            terminal.say(f"  [{call.index}] {call.tool}", "cyan")
        terminal.show((line, "cyan") for line in differences(was, edit.arguments, edit.without))
        edits.append(edit)
    if not edits:
        raise NothingChanged
    return tuple(edits)


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


def calls_as_yaml(calls: Sequence[RequestedCall], arguments: Mapping[int, dict[str, Any]]) -> str:
    """Return YAML with the arguments of each call under its number."""
    return "".join(_call_written(call, arguments[call.index]) for call in calls)


def _call_written(call: RequestedCall, arguments: dict[str, Any]) -> str:
    name = f"call {call.index}"
    inside = "".join(f"  {line}\n" for line in arguments_as_yaml(arguments).splitlines())
    text = f"{name}:  # {one_line(call.tool, 200)}\n{inside}"
    return text if _read(text) == {name: arguments} else f"{name}: {written(arguments)}\n"


def calls_in(found: Any, calls: Sequence[RequestedCall]) -> dict[int, Any]:
    """Return the arguments of each call as `calls_as_yaml` writes them; raises DecisionRefused where one is missing."""
    names = {f"call {call.index}": call.index for call in calls}
    if not isinstance(found, dict) or found.keys() != names.keys():
        raise DecisionRefused(f"the file must have {', '.join(names)} and no other; nothing was changed")
    return {names[name]: {} if value is None else value for name, value in found.items()}


def arguments_in_yaml(text: str) -> Any:
    """Return what is in YAML; raises DecisionRefused, with line and column, for what cannot be read."""
    try:
        return _read(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DecisionRefused(f"arguments: {one_line(str(error), 300)}; nothing was changed") from None


def _read(text: str) -> Any:
    return read_yaml(text, _Loader)


async def _chosen(terminal: Terminal, request: ApprovalRequest) -> list[RequestedCall]:
    """Return the calls that a person names; of a plan one, since it is proposed anew with its change."""
    calls, plan = request.calls, request.proposal is not None
    if len(calls) == 1:
        return list(calls)
    typed = await terminal.ask("which step? number:" if plan else "which calls? numbers, such as 3 or 3,7-9:")
    if typed is None:
        raise Detached
    chosen = set(numbers_in(typed, [call.index for call in calls], "step" if plan else "call"))
    if plan and len(chosen) > 1:
        raise DecisionRefused("step: a plan is proposed again with each change; name one step; nothing was changed")
    return [call for call in calls if call.index in chosen]


def numbers_in(typed: str, known: Sequence[int], name: str) -> list[int]:
    """Return which of the known numbers are typed, such as `3,7-9`; raises DecisionRefused for any other."""
    found: list[int] = []
    for part in re.sub(r"\s*-\s*", "-", typed).replace(",", " ").split():
        ends = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (-1, -1)
        if first not in known or last not in known or first > last:
            raise DecisionRefused(f"{name}: no {name} {one_line(part, 40)!r} waits for approval; nothing was changed")
        found += [number for number in known if first <= number <= last]
    if not found:
        raise DecisionRefused(f"{name}: none was named; nothing was changed")
    return found


async def _in_line(terminal: Terminal, call: RequestedCall, before: dict[str, Any], *, again: bool) -> Any:
    """Return what a person changes of a call by typing new values in one line.

    Raises EntryRefused for what cannot be read, unless they are to be asked again.
    """
    from people.requests.editing import NothingChanged, edit_in_json
    from people.requests.entered import EntryRefused

    which = f"[{call.index}] {call.tool}: " if again else ""
    leaves = "; Enter leaves it as it is" if again else ""
    names, notes = ", ".join(call.arguments), list[tuple[str, str]]()
    question = f'{which}new values as JSON, such as {{"name": "value"}}{leaves}; names: {names}:'
    while True:
        typed = await terminal.ask(question, notes)
        if typed is None:
            raise Detached
        try:
            return edit_in_json(call.index, before, typed or "{}", whole=False)
        except NothingChanged:
            raise
        except EntryRefused as error:
            if not again:
                raise
            notes = [(f"not accepted: {error}", "red")]


async def _in_editor(
    editor: str, calls: Sequence[RequestedCall], arguments: Mapping[int, dict[str, Any]]
) -> dict[int, str]:
    """Return as JSON what a person makes of the arguments of calls in an editor."""
    alone = calls[0] if len(calls) == 1 else None
    how = "change the arguments, save, and close; one that you delete is left out."
    about = f"# {'Of these calls' if alone is None else one_line(alone.tool, 200)}: {how}\n"
    text = calls_as_yaml(calls, arguments) if alone is None else arguments_as_yaml(arguments[alone.index])
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        file = Path(folder) / "arguments.yaml"
        file.write_text(about + text, encoding="utf-8")
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(editor), str(file))
        except (OSError, ValueError) as error:
            raise DecisionRefused(f"EDITOR: {editor!r} cannot be started: {type(error).__name__}") from None
        if await process.wait() != 0:
            raise DecisionRefused("the editor failed; nothing was changed")
        try:
            saved = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else type(error).__name__
            raise DecisionRefused(f"the file cannot be read: {why}; save it as UTF-8; nothing was changed") from None
        found = arguments_in_yaml(saved)
    made = calls_in(found, calls) if alone is None else {alone.index: found}
    return {index: json.dumps(value) for index, value in made.items()}
