"""What the daemon does with the engine's own parts: describe plugins, run one, hide secrets. Slow to load."""

import asyncio
import math
import re
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from backstay.errors import BackstayError, OutcomeUnknown
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.plugin_jobs.jobs import PluginJob
from gateways.plugin_jobs.log import Redact
from gateways.plugin_jobs.protocol import NOT_FOUND, OUTCOME_UNKNOWN, TIMEOUT, read_json

if TYPE_CHECKING:
    from toolbox.plugins.opening import OpenPlugins

_EXIT_CODE = re.compile(r"^(?:[A-Za-z]+: )?exit code -?\d+: ")
_LONGEST_REASON = 500
_ASKED_AT_ONCE = 4


def open_all() -> "tuple[OpenPlugins, Redactor]":
    """Open the plugins of the current folder's settings, and what knows all of their secrets. Raises BackstayError."""
    from sandbox.isolation.command_jail import CommandJail  # noqa: PLC0415 - the first job loads the engine
    from toolbox.plugins.opening import open_plugins  # noqa: PLC0415 - the same

    settings = Settings.load()
    jail = CommandJail(nsjail=settings.nsjail, home=settings.home, image=settings.image)
    opened = open_plugins(settings.toolbox, settings.environment, home=settings.home, confinement=jail)
    return opened, Redactor(settings.secrets() | opened.secrets)


@cache
def _knowing_redactor() -> Redactor:
    return open_all()[1]


def _redactor() -> Redactor:
    """Return what hides secrets; until the settings are usable, only what looks like one is found."""
    try:
        return _knowing_redactor()
    except BackstayError:
        return Redactor(())


def redactor() -> Redact:
    """Return what hides secrets in a value."""
    return lambda value: _redactor().redact(value)


def without_known(payload: Any) -> Any:
    """Return an answer of a job with a mask for each secret that the settings or the toolbox hold."""
    return _redactor().without_known(payload)


def answer_of(data: Any) -> Any:
    """Return what a plugin printed: the value of JSON, else the text."""
    from toolbox.providers.json_safe import json_safe  # noqa: PLC0415 - the first job loads the engine

    if not isinstance(data, str):
        return "" if data is None else data
    try:
        return json_safe(read_json(data))
    except (ValueError, RecursionError):
        return data


def reason_of(error: str | None) -> str:
    """Return the plugin's own reason, without the exit code before it."""
    return _EXIT_CODE.sub("", error or "", count=1) or (error or "")


async def describe(names: list[str]) -> dict[str, Any]:
    """Return what plugins can do, or why they cannot be used, by name."""
    try:
        opened, hide = open_all()
    except BackstayError as error:
        return {name: _unusable(str(error), unsure=True) for name in names}
    # One that hangs must not make the others wait for it.
    turns = asyncio.Semaphore(_ASKED_AT_ONCE)

    async def described(name: str) -> dict[str, Any]:
        async with turns:
            return await _describe_one(opened, hide, name)

    return dict(zip(names, await asyncio.gather(*map(described, names)), strict=True))


async def _describe_one(opened: "OpenPlugins", hide: Redactor, name: str) -> dict[str, Any]:
    from toolbox.plugins.opening import help_of  # noqa: PLC0415 - the first job loads the engine

    provider = opened.providers.get(name)
    if provider is None:
        return _unusable(opened.unset.get(name, "it is not a plugin of this toolbox"))
    try:
        tools = await provider.tools()
    except BackstayError as error:
        return _unusable(hide.text(str(error)))
    return {
        "actions": {tool.name: help_of(name, tool) for tool in tools.values()},
        "schemas": {tool.name: tool.schema for tool in tools.values()},
        "parallel": provider.parallel,
        "reason": None,
        "unsure": False,
    }


def _unusable(reason: str, *, unsure: bool = False) -> dict[str, Any]:
    reason = one_line(reason, _LONGEST_REASON)
    sys.stderr.write(f"backstay plugins: {reason}\n")
    return {"actions": {}, "schemas": {}, "parallel": False, "reason": reason, "unsure": unsure}


class LocalPlugins:
    """Run plugins in this process."""

    def __init__(self) -> None:
        """Open the plugins of the current folder's settings with the first job that finds them usable."""
        self._opened: OpenPlugins | None = None
        self._hide = Redactor(())

    async def run(self, job: PluginJob, started: Callable[[], None]) -> tuple[str, Any]:
        """Run one job; return its last status and the payload of that."""
        from toolbox.plugins.opening import check_arguments  # noqa: PLC0415 - the same
        from toolbox.providers.provider import Caller, ProviderCall  # noqa: PLC0415 - the same

        try:
            if self._opened is None or job.plugin not in self._opened.providers:
                self._opened, self._hide = open_all()  # its folder may have been added after the others were opened
            provider = self._opened.providers.get(job.plugin)
            tool = None if provider is None else (await provider.tools()).get(job.action)
            if provider is None or tool is None:
                return "error", {"error": self._opened.unset.get(job.plugin, NOT_FOUND)}
            check_arguments(tool, job.arguments)

            async def before_send() -> None:
                started()

            # The deadline counts from the start, however long a job of another daemon runs before it.
            given = ProviderCall(
                tool=tool.name,
                arguments=job.arguments,
                deadline_s=job.timeout_s,
                before_send=before_send,
                caller=Caller(patience_s=math.inf),
            )
            answer = await provider.call(given)
        except OutcomeUnknown as error:
            return (
                ("timeout", {"error": TIMEOUT})
                if error.facts.get("timed_out")
                else ("error", {"error": OUTCOME_UNKNOWN})
            )
        except (BackstayError, OSError) as error:
            return "error", {"error": self._hide.text(one_line(str(error), _LONGEST_REASON))}
        if answer.success:
            return "success", self._hide.without_known(answer_of(answer.data))
        return "error", {"error": self._hide.text(reason_of(answer.error))}
