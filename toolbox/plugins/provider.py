"""Offer a plugin as a provider of tools, one call at a time."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import structlog

from backstay.errors import ArgumentsInvalid, BackstayError, OutcomeUnknown, ToolBusy, ToolChanged, ToolUnavailable
from backstay.redaction.redactor import Redactor
from backstay.shown import message_line
from backstay.tools.execution import ExecutionResult
from system.folders import folder_hash
from system.locks import folder_lock
from toolbox.plugins.arguments import PLUGIN, split_timeout, with_timeout
from toolbox.plugins.plugin import Plugin, PluginTool
from toolbox.processes.runner import NotEnded
from toolbox.providers.answer import Answer, parsed, refused
from toolbox.providers.concurrency import SharedTask
from toolbox.providers.json_safe import json_safe
from toolbox.providers.listing import ListedTool, Listing
from toolbox.providers.provider import NotSent, ProviderCall

_RETRY_S = 30.0
_JAILED_SIGNAL = 128
"""A jail reports a signal as an exit code above this one, as shells do."""
_log = structlog.get_logger("toolbox")


class PluginProvider:
    """Offer the tools of one plugin; its parser is read again when one of its modules changes."""

    kind = PLUGIN

    def __init__(self, name: str, plugin: Plugin, redactor: Redactor) -> None:
        self.name = name
        self._redactor = redactor
        self._plugin = plugin
        self.parallel = plugin.parallel
        self._tools: dict[str, PluginTool] = {}
        self._listing = Listing()
        self._state: object = None
        self._described_at = float("-inf")
        self._describing = SharedTask(self._describe)

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return its tools, or the reason why it cannot be loaded; then loading is tried again in the background."""
        if fresh or await asyncio.to_thread(self._plugin.state) != self._state:
            await asyncio.wait({self._describing.start()})
        elif self._listing.reason is not None and time.monotonic() - self._described_at > _RETRY_S:
            self._describing.start()
        return self._listing

    async def tools(self) -> Mapping[str, PluginTool]:
        """Return its tools by name. Raises ToolUnavailable with the reason why it cannot be loaded."""
        listing = await self.list()
        if listing.reason is not None:
            raise ToolUnavailable(f"{self.name}: {listing.reason}")
        return dict(self._tools)

    def hash_of_files(self, leave_out: Sequence[str]) -> str:
        """Return a hash of all of its files but those that match a glob."""
        return folder_hash(self._plugin.folder, leave_out)

    async def call(self, call: ProviderCall) -> Answer:
        """Run it once, while no other call of it runs, of whatever process; one that is `parallel` does not wait.

        Raises ToolUnavailable before `before_send`, also as ToolBusy; NotSent or OutcomeUnknown after it.
        """
        patience_s = call.deadline_s if call.caller.patience_s is None else call.caller.patience_s
        async with self._turn(patience_s) as held:
            began = time.monotonic()
            listing = await self.list()
            if listing.reason is not None:
                raise ToolUnavailable(f"{self.name}: {listing.reason}")
            if call.still_listed is not None:
                call.still_listed(listing)
            tool = self._tools.get(call.tool)
            if tool is None:
                raise ToolChanged(f"{self.name} has no {call.tool} any more")
            call = _timed(call, tool)
            ends = began + call.deadline_s
            try:
                words = tool.words(call.arguments)
                await self._plugin.check()
            except ArgumentsInvalid as error:
                if call.before_send is not None:
                    await call.before_send()  # so that the effect is recorded as failed
                return refused(str(error))
            except (BackstayError, OSError) as error:
                raise ToolUnavailable(f"{self.name}: {error}") from None
            if call.still_granted is not None:
                await call.still_granted()  # it may have waited long for its turn
            if call.before_send is not None:
                await call.before_send()
            return await self._run(words, call, max(0.1, ends - time.monotonic()), held)

    @asynccontextmanager
    async def _turn(self, patience_s: float) -> AsyncGenerator[tuple[int, ...]]:
        """Hold the lock of its folder; yields the open files that its process inherits, and so holds the lock with."""
        if self._plugin.parallel:
            yield ()
            return
        async with AsyncExitStack() as stack:
            try:
                held = await stack.enter_async_context(folder_lock(self._plugin.folder, wait_s=patience_s))
            except TimeoutError:
                raise ToolBusy(f"{self.name} is busy with another call") from None
            except OSError as error:
                raise ToolUnavailable(f"{self.name}: its folder cannot be opened: {error.strerror}") from None
            yield (held,)

    async def close(self) -> None:
        """Stop reading its parser; a running call is ended by its own caller."""
        await self._describing.cancel()

    async def _describe(self) -> None:
        state = await asyncio.to_thread(self._plugin.state)
        reason, tools = None, tuple(self._tools.values())
        try:
            tools = await self._plugin.describe()
        except (BackstayError, OSError) as error:
            reason = self._redactor.clipped_text(str(error))
            _log.warning("provider.unavailable", provider=self.name, reason=reason)
        listed = tuple(_listed(tool) for tool in tools)
        changed = repr(listed) != repr(self._listing.tools)
        self._tools = {tool.name: tool for tool in tools}
        self._listing = Listing(tools=listed, reason=reason, generation=self._listing.generation + changed)
        self._described_at = time.monotonic()
        self._state = state

    async def _run(self, words: Sequence[str], call: ProviderCall, left_s: float, held: Sequence[int]) -> Answer:
        variables = {"BACKSTAY_EFFECT_ID": call.effect_id} if call.effect_id else {}
        try:
            result = await self._plugin.run(words, timeout_s=left_s, variables=variables, inherited=held)
        except TimeoutError as error:
            said = f"killed: not done within {call.deadline_s:g} s"
            raise OutcomeUnknown(said, timed_out=True, ended=not isinstance(error, NotEnded)) from None
        except (BackstayError, OSError) as error:  # all of these come before the program's first instruction
            if call.before_send is None:
                raise ToolUnavailable(f"{self.name}: {error}") from None
            raise NotSent(f"{self.name}: {error}") from None
        killed = -result.exit_code if self._plugin.confinement is None else result.exit_code - _JAILED_SIGNAL
        if 0 < killed <= 64:
            raise OutcomeUnknown(f"the program was killed by signal {killed} before it was done", ended=True)
        return _answer(self._plugin, result)


def _listed(tool: PluginTool) -> ListedTool:
    schema = with_timeout(tool.schema)
    return ListedTool(tool.name, tool.description, json_safe(schema), timed=schema != tool.schema)


def _timed(call: ProviderCall, tool: PluginTool) -> ProviderCall:
    """Return a call without the argument that says how long it may take, and with no longer than that."""
    arguments, wanted_s = split_timeout(call.arguments, tool.schema)
    deadline_s = call.deadline_s if wanted_s is None else min(call.deadline_s, wanted_s)
    return replace(call, arguments=arguments, deadline_s=deadline_s)


def _answer(plugin: Plugin, result: ExecutionResult) -> Answer:
    """Return stdout as JSON if it is an object or a list, else as text; any exit code but 0 is the tool's own error."""
    said = json_safe(result.stdout.strip())
    data = parsed(said) if said else None
    if result.exit_code == 0:
        return Answer(success=True, data=data, stated=True)
    stated = data.get("error") if isinstance(data, dict) else None
    stated = stated if isinstance(stated, str) or not stated else json.dumps(stated, ensure_ascii=False)
    reason = message_line(stated) if stated else plugin.complaint(result)
    return Answer(success=False, data=data, error=message_line(f"exit code {result.exit_code}: {reason}"))
