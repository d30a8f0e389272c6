"""Let a person change the arguments of a call, and show what they changed."""

import asyncio
import json
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.layout import changed_lines
from backstay.client import Run
from backstay.errors import BackstayError, DecisionRefused
from backstay.shown import one_line, shown_arguments
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
    written = await (_in_editor(editor, _as_text(before)) if editor else _in_line(terminal, call))
    # Typed in one line are only the new values; in an editor stands all of it.
    edit = edit_in_json(call.index, before, written, whole=bool(editor))
    terminal.show((line, "cyan") for line in differences(before, edit.arguments, edit.without))
    return edit


def differences(before: dict[str, Any], changed: dict[str, Any], gone: Sequence[str] = ()) -> list[str]:
    """Return what differs once these arguments are changed, or gone, as lines for people."""
    kept = {name: value for name, value in before.items() if name in changed or name in gone}
    shown = [shown_arguments(arguments, _ALL).arguments for arguments in (kept, changed)]
    return [f"  {line}" for line in changed_lines(*shown)]


def _as_text(arguments: dict[str, Any]) -> str:
    """Return JSON in which every sign can be seen."""
    text = json.dumps(arguments, indent=2, ensure_ascii=False)
    return "".join(sign if sign == "\n" or one_line(sign, 20) == sign else json.dumps(sign)[1:-1] for sign in text)


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


async def _in_editor(editor: str, text: str) -> str:
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        file = Path(folder) / "arguments.json"
        file.write_text(text + "\n", encoding="utf-8")
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(editor), str(file))
        except (OSError, ValueError) as error:
            raise DecisionRefused(f"EDITOR: {editor!r} cannot be started: {type(error).__name__}") from None
        if await process.wait() != 0:
            raise DecisionRefused("the editor failed; nothing was changed")
        return file.read_text(encoding="utf-8")
