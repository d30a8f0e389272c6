"""The files and the shell of a workspace as providers; their calls run in jails that another process starts."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from backstay.errors import (
    BackstayError,
    Final,
    InternalError,
    OutcomeUnknown,
    ToolUnavailable,
    Transient,
)
from backstay.policies.command_lists import CommandLists
from backstay.tools.execution import ExecutionResult, JailUse
from toolbox.providers.answer import Answer, refused
from toolbox.providers.declaration import Declaration
from toolbox.providers.listing import ListedTool, Listing
from toolbox.providers.provider import NotSent, ProviderCall, WorkspaceAccess

NO_WORKSPACE = "this run has no workspace; its task names one in `workspace`"
_COMMAND_S = 60.0
_MARGIN_S = 2.5
"""What is left of the time for an answer when a command must have ended, for the snapshot after it."""
_NOT_ALLOWED = 126


class WorkspaceHost(Protocol):
    """Reach the process that owns the workspaces."""

    @property
    def reason(self) -> str | None:
        """Why workspaces cannot be used; None when they can."""
        ...

    @property
    def root(self) -> str:
        """The operator's own root in which commands run, as people are told it; empty when there is none."""
        ...

    async def call(self, **given: Any) -> dict[str, Any]:
        """Do one thing; return `ok` with the answer, or `error` with the reason."""
        ...

    async def show(self, **given: Any) -> dict[str, Any]:
        """Return what would change, as `ok` with `diff`, or `error` with the reason."""
        ...

    async def require_place(self, place: str) -> None:
        """Raise WorkerMisfit for a run whose workspace is in another place."""
        ...

    async def claim(self, workspace: str, run: str, *, place: str = "") -> str:
        """Claim the workspace for the run. Raises WorkspaceBusy, which names the holder."""
        ...


class WorkspaceProvider:
    """Offer the files, or the shell, of the workspace that a run was given."""

    kind = "builtin"

    def __init__(
        self, name: str, tools: Sequence[ListedTool], host: WorkspaceHost, lists: CommandLists | None = None
    ) -> None:
        self.name = name
        self._tools = {tool.name: tool for tool in tools}
        self._host = host
        if name == "shell":
            self._tools["run"] = replace(self._tools["run"], commands=lists or CommandLists())

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return the tools, with the reason when nothing can be confined here."""
        place = self._host.root if self.name == "shell" else ""
        return Listing(tools=tuple(self._tools.values()), place=place, reason=self._host.reason)

    async def call(self, call: ProviderCall) -> Answer:
        """Call one tool; a call that the lists, the workspace or another run do not allow never reaches a jail."""
        ends = time.monotonic() + call.deadline_s
        if call.still_listed is not None:
            call.still_listed(await self.list())
        refusal = await self._refusal(call)
        # What is refused is recorded too: an effect that was tried and did not happen.
        if call.before_send is not None:
            await call.before_send()
        return refusal or await self._send(call, ends)

    async def preview(self, call: ProviderCall) -> str | None:
        """Return what a call would change, as a diff for people, or why it would change nothing; None for commands."""
        if call.workspace_access is None or not self._tools[call.tool].previewed:
            return None
        try:
            said = await asyncio.wait_for(self._host.show(**_given(call, call.workspace_access)), call.deadline_s)
        except (TimeoutError, BackstayError) as error:
            return f"(no diff: {error or 'it took too long'})"
        return str(said["ok"]["diff"]) if "ok" in said else f"(it would fail: {said['error']})"

    async def close(self) -> None:
        """Do nothing: the worker that opened the host closes it."""

    async def _refusal(self, call: ProviderCall) -> Answer | None:
        """Return why a call is refused, as far as that is known before it is made."""
        place = call.workspace_access
        if place is None:
            return refused(NO_WORKSPACE)
        commands = self._tools[call.tool].commands
        if commands is not None and (fault := commands.refusal(str(call.arguments.get("command", "")))) is not None:
            told = ExecutionResult(exit_code=_NOT_ALLOWED, stderr=fault, allowed=False)
            return Answer(success=False, data=told.plain(), error=fault)
        try:
            await self._host.require_place(place.place)
            if not self._tools[call.tool].hidden:
                await self._host.claim(place.workspace, place.run, place=place.place)
        except Transient as error:
            raise ToolUnavailable(str(error)) from None
        except Final as error:
            return refused(f"{type(error).__name__}: {error}")
        return None

    async def _send(self, call: ProviderCall, ends: float) -> Answer:
        assert call.workspace_access is not None  # noqa: S101 - refused before
        left = max(0.1, ends - time.monotonic())
        times = {
            "seconds": max(0.1, float(call.arguments.get("timeout_s", _COMMAND_S))),
            "within": max(0.1, left - _MARGIN_S),
        }
        given = _given(call, call.workspace_access) | times
        try:
            said = await asyncio.wait_for(self._host.call(**given), left)
        except TimeoutError:
            raise OutcomeUnknown(f"no answer within {call.deadline_s:g} s", timed_out=True) from None
        except Transient as error:
            # Nothing of it is left, or will be when the workspace is next used; it may be sent again.
            if call.before_send is None:
                raise NotSent(str(error)) from None
            raise OutcomeUnknown(str(error)) from None
        except InternalError:
            raise
        except Final as error:
            return refused(f"{type(error).__name__}: {error}")
        used = JailUse.model_validate(said["used"]) if "used" in said else None
        if "ok" in said:
            return Answer(success=True, data=said["ok"], used=used)
        # Its host has put the workspace back as it was, or says that it could not.
        return replace(refused(str(said["error"])), left_nothing="partly" not in said, used=used)


def _given(call: ProviderCall, place: WorkspaceAccess) -> dict[str, Any]:
    given: dict[str, Any] = {
        "workspace": place.workspace,
        "run": place.run,
        "place": place.place,
        "writable": place.writable,
        "tool": call.tool,
        "arguments": {name: value for name, value in call.arguments.items() if name != "timeout_s"},
        "effect": call.effect_id,
    }
    given |= {"rehearsal": place.rehearsal} if place.rehearsal else {}
    return given | ({"limits": place.limits.plain()} if place.limits is not None else {})


def workspace_providers(host: WorkspaceHost, lists: CommandLists | None = None) -> dict[str, WorkspaceProvider]:
    """Return both providers by name."""
    return {name: WorkspaceProvider(name, _listed(name), host, lists) for name in ("fs", "shell")}


def workspace_tools() -> dict[str, frozenset[str]]:
    """Return the names of the tools of both."""
    return {name: frozenset(tool.name for tool in _listed(name)) for name in ("fs", "shell")}


@cache
def _listed(provider: str) -> tuple[ListedTool, ...]:
    """Return the tools of `fs` or `shell`, with those that only the engine calls to check and undo writes."""
    described = json.loads(Path(__file__).with_name("tools.json").read_bytes())
    tools = [*described[provider], *described["engine"]]
    for tool in tools:
        tool["hidden"] = tool in described["engine"]
        written = {} if tool["hidden"] or tool["declared"]["safety"] == "read_only" else described["writes"]
        tool["declared"] = Declaration.model_validate(written | tool["declared"])
    return tuple(ListedTool(**tool) for tool in tools)
