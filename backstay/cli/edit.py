"""Let a person change the arguments of calls, in their editor or in one line."""

import asyncio
import json
import shlex
import tempfile
from pathlib import Path
from typing import Any

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.cli.terminal import Terminal
from backstay.errors import DecisionRefused


async def edited(terminal: Terminal, request: ApprovalRequest, editor: str | None) -> dict[int, dict[str, Any]]:
    """Return the changed arguments by index of the call; keys left as they were are left out.

    Raises DecisionRefused when what was written cannot be used.
    """
    call = await _chosen(terminal, request.calls)
    text = json.dumps(call.arguments, indent=2, ensure_ascii=False)
    written = await (_in_editor(editor, text) if editor else _in_line(terminal, call))
    try:
        after = json.loads(written)
    except ValueError as error:
        raise DecisionRefused(f"arguments: no JSON ({error}); nothing was changed") from None
    if not isinstance(after, dict):
        raise DecisionRefused("arguments: not a JSON object; nothing was changed")
    changed = {name: value for name, value in after.items() if call.arguments.get(name) != value}
    if not changed:
        raise DecisionRefused("arguments: nothing was changed")
    return {call.index: changed}


async def _chosen(terminal: Terminal, calls: tuple[RequestedCall, ...]) -> RequestedCall:
    if len(calls) == 1:
        return calls[0]
    typed = await terminal.ask("which call? number:") or ""
    found = next((call for call in calls if str(call.index) == typed), None)
    if found is None:
        raise DecisionRefused(f"call: no call {typed!r}; nothing was changed")
    return found


async def _in_line(terminal: Terminal, call: RequestedCall) -> str:
    names = ", ".join(call.arguments)
    return await terminal.ask(f'new values as JSON, such as {{"name": "value"}}; names: {names}:') or "{}"


async def _in_editor(editor: str, text: str) -> str:
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        file = Path(folder) / "arguments.json"
        file.write_text(text + "\n", encoding="utf-8")
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(editor), str(file))
        except (OSError, ValueError) as error:
            raise DecisionRefused(f"EDITOR: {editor!r} cannot be started: {type(error).__name__}") from None
        if await process.wait() != 0:
            raise DecisionRefused("the editor ended with a fault; nothing was changed")
        return file.read_text(encoding="utf-8")
