"""Run programs at a server that runs them in jails of its own; their calls are made here, as for any other program.

The server is told the source and the bindings, and never has the host's tools or a secret. It answers in rounds: with
calls to be made, or with how the program ended. Its answers are checked like those of a jail.
"""

import asyncio
import json
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import httpx2

from backstay.errors import Unreachable
from backstay.shown import message_line
from sandbox.limits import Limits
from sandbox.programs.bridge import CallBridge
from sandbox.programs.crash import ProgramCrashed
from sandbox.programs.frames import ProgramCall, read_frame, strict_json
from sandbox.programs.standalone import SandboxResult, bindings_of, bridge_for, tools_of

_MOST_BYTES = 4 << 20
"""Of one answer: more than a program may return and print."""
_OK = 200
_BESIDE_S = 60.0
"""What a server may take besides the time of the program, such as for proving its jails."""


class HttpPlanBackend:
    """Run programs at one server; it takes and returns what `run_python_plan` does."""

    def __init__(self, url: str, *, token: str) -> None:
        """Take the address of the server and the token that it asks for."""
        self._url = url
        self._headers = {"authorization": f"Bearer {token}"}

    async def __call__(
        self, code_body: str, *, user_id: str, toolbox_root: Path, timeout_sec: float = 30
    ) -> SandboxResult:
        """Run one program. Raises Unreachable when the server does not answer, or not as it should."""
        bindings = await asyncio.to_thread(bindings_of, toolbox_root)
        bridge = bridge_for(user_id)
        asked = {"code_body": code_body, "user_id": user_id, "timeout_sec": timeout_sec, "bindings": bindings}
        # No proxy of the environment: the address was named, and the answers of tools pass through here.
        options: dict[str, Any] = {"base_url": self._url, "headers": self._headers, "trust_env": False}
        try:
            async with httpx2.AsyncClient(**options, timeout=timeout_sec + _BESIDE_S) as client:
                async with asyncio.timeout(timeout_sec + _BESIDE_S):
                    said = await _rounds(client, asked, tools_of(bindings), bridge)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError, ProgramCrashed) as error:
            reason = message_line(bridge.masked(str(error))) or type(error).__name__
            raise Unreachable(f"the server of programs at {self._url}: {reason}") from None
        shown = await bridge.shown(said.result, "program")
        logs = tuple(bridge.masked("\n".join(said.logs)).splitlines())
        error = said.error and message_line(bridge.masked(said.error))
        return said.model_copy(update={"result": shown, "logs": logs, "error": error})


async def _rounds(
    client: httpx2.AsyncClient, asked: dict[str, Any], tools: AbstractSet[str], bridge: CallBridge
) -> SandboxResult:
    until = asyncio.get_running_loop().time() + asked["timeout_sec"]
    said, made = await _posted(client, "/plans", asked), 0
    while "calls" in said:
        calls = _calls(said["calls"], tools, made)
        made += len(calls)
        try:
            async with asyncio.timeout_at(until):
                answers = await asyncio.gather(*(bridge.answer(call) for call in calls))
        except TimeoutError:
            # Its time is up: the server says what it has printed, without these answers.
            answers = []
        said = await _posted(client, "/answers", {"plan": said["plan"], "answers": answers})
    return SandboxResult.model_validate(said["result"])


def _calls(said: Any, tools: AbstractSet[str], made: int) -> tuple[ProgramCall, ...]:
    """Return the calls of a round; a server may ask for no more than a jail may."""
    read = read_frame(json.dumps({"calls": said}).encode(), tools=tools, first_call=made, limits=Limits())
    return read if isinstance(read, tuple) else ()


async def _posted(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return what the server answers, read only as far as an honest answer goes. Raises ValueError for any other."""
    came = bytearray()
    async with client.stream("POST", path, json=body) as response:
        async for part in response.aiter_bytes():
            came += part
            if len(came) > _MOST_BYTES:
                raise ValueError(f"it answers with more than {_MOST_BYTES} bytes")
    if response.status_code != _OK:
        raise ValueError(f"HTTP {response.status_code}: {message_line(came.decode(errors='replace'), 200)}")
    match strict_json(bytes(came)):
        case {"plan": str(), "calls": list()} | {"result": dict()} as said:
            return said
        case _:
            raise ValueError("it answers with neither calls nor a result")
