"""Make the calls of one program with a host's own tools, and keep what the engine promises of calls.

What failed for now is tried again, no more calls than in a run are under way at once, and no secret reaches the jail:
a program gets a handle in its place, which is the secret again only for the provider that it came from.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from backstay.errors import Denied, Transient
from backstay.redaction.handles import belongs_to, handle_for, handles_in, label_of, provider_of, replace_handles
from backstay.redaction.redactor import Redactor
from backstay.redaction.text import KNOWN
from backstay.shown import message_line
from backstay.tools.tool import tool_result
from backstay.tools.trying import TOGETHER, TRANSIENT_S, pause_after, retry_after
from sandbox.programs.frames import ProgramCall
from system.clock import uptime

ToolCaller = Callable[[str, dict[str, Any], str], Awaitable[Any]]
"""Takes `provider.tool`, the arguments and the user's id; returns the tool's answer as JSON, or raises.

What it raises is an answer to the program; a Transient says that nothing was sent, so it is asked again.
"""
_NO_TOOLS = "no tools are available here; register some with register_tool_caller"


class CallBridge:
    """Answer the calls of one program."""

    def __init__(self, caller: ToolCaller | None, user_id: str, redactor: Redactor) -> None:
        """Ask this caller in the name of a user; the redactor knows the secrets of this process."""
        self._caller = caller
        self._user_id = user_id
        self._redactor = redactor
        self._key = secrets.token_bytes(32)
        self._values: dict[str, Any] = {}
        self._free = asyncio.Semaphore(TOGETHER)
        self._turn = asyncio.Lock()

    async def answer(self, call: ProgramCall) -> dict[str, Any]:
        """Return the answer to a call as the program's next frame holds it."""
        provider = call.tool.partition(".")[0]
        try:
            value = await self._tried(call, provider)
            json.dumps(value, allow_nan=False)
            answer: dict[str, Any] = {"i": call.i, "ok": await self.shown(value, provider)}
        except Exception as error:  # any exception of a tool is an answer to the program
            kind = type(error).__name__ if self._caller else "ToolError"
            said = message_line(self._redactor.clipped_text(str(error))) or kind
            answer = {"i": call.i, "error": {"type": kind, "message": said}}
        if not call.whole:
            return answer
        fault = answer.get("error", {"message": None, "type": ""})
        told = tool_result(call.tool, answer.get("ok"), error=fault["message"], kind=fault["type"])
        return {"i": call.i, "ok": told}

    async def shown(self, value: Any, source: str) -> Any:
        """Return a value with a handle in place of each secret."""
        async with self._turn:
            found = await asyncio.to_thread(self._replaced, value, source)
            if not found[1]:
                return found[0]
            self._values |= found[1]
            texts = {str(secret) for handle, secret in found[1].items() if label_of(handle) != KNOWN}
            self._redactor = await asyncio.to_thread(self._redactor.knowing, texts, self._values)
            # A secret that is known only now may also be elsewhere in it, under no telling name.
            again = await asyncio.to_thread(self._replaced, found[0], source)
            self._values |= again[1]
            return again[0]

    def masked(self, text: str) -> str:
        """Return a string with every secret masked."""
        return self._redactor.text(text)

    async def _tried(self, call: ProgramCall, provider: str) -> Any:
        if self._caller is None:
            raise LookupError(_NO_TOOLS)
        arguments = self._revealed(call.arguments, provider)
        ends, attempt = uptime() + TRANSIENT_S, 1
        while True:
            try:
                async with self._free:
                    return await self._caller(call.tool, arguments, self._user_id)
            except Transient as error:
                pause = retry_after(error.facts.get("retry_after")) or pause_after(attempt)
                if uptime() + pause > ends:
                    raise
            await asyncio.sleep(pause)
            attempt += 1

    def _revealed(self, arguments: dict[str, Any], provider: str) -> dict[str, Any]:
        """Return arguments as the tool receives them. Raises Denied where a secret is another provider's."""
        held = [handle for handle in handles_in(arguments) if handle in self._values]
        for handle in held:
            if not belongs_to(handle, provider):
                raise Denied(f"a secret of {provider_of(handle)} may not be passed to {provider}")
        return replace_handles(arguments, {handle: self._values[handle] for handle in held})

    def _replaced(self, value: Any, source: str) -> tuple[Any, dict[str, Any]]:
        held: dict[str, Any] = {}
        by_value = {str(secret): handle for handle, secret in self._values.items() if belongs_to(handle, source)}

        def substitute(label: str, secret: Any) -> str:
            known = by_value.get(str(secret)) if label == KNOWN else None
            handle = known or handle_for(self._key, source, label, secret)
            held[handle] = secret
            return handle

        return self._redactor.replace(value, substitute), held
