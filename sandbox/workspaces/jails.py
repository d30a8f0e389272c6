"""Run file tools and commands in jails over a workspace, and interpret how they end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from backstay.errors import IsolationUnavailable, SandboxLost
from backstay.policies.network import Site, sites_of
from backstay.tools.execution import JailUse
from sandbox.images.image import Image
from sandbox.images.own_root import OwnRoot
from sandbox.isolation.cause import likely_cause
from sandbox.isolation.cgroups import Cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import JailProfile, ProfileKind, interpreter_arguments
from sandbox.limits import Limits, review_limits, shell_limits
from sandbox.network.bridge import open_bridge
from sandbox.network.proxy import Proxy
from sandbox.workspaces.answers import MOST_ANSWER, read_answer
from sandbox.workspaces.command import CommandBounds, CommandOutcome, Heard, run_jailed
from sandbox.workspaces.watch import JailWatch
from sandbox.workspaces.workspace import Workspace, WorkspaceCall
from system.addresses import Internet
from system.frames import json_frame

FILES = "/usr/lib/backstay/files/main.py"
REVIEW = "/usr/lib/backstay/review/main.py"
_SHELL = ("/usr/bin/bash", "--noprofile", "--norc", "-c")
_TRIAL = (
    "echo started; for at in / /*; do (: > $at/.backstay) 2>/dev/null && { [ $at = /tmp ] || echo $at; }; done; true"
)
"""Says that it started, and the folders at the top in which it could write."""
_TRIAL_S = 20.0
_FILES_S = 20.0
_BACKSTOP_S = 30
_ANSWER_S = 10.0
"""What a check gets beyond its time, so that it can still say how far it came."""
_FAILED = 255


def file_limits() -> Limits:
    """Return the limits of a jail for one file tool: few processes, and little memory, disk and time."""
    return Limits(memory_mb=1024, cpu_s=10, tmp_mb=1, tmp_inodes=16, file_mb=64, files=256, processes=4)


class WorkspaceJails:
    """Run one command, or one file tool, over a workspace."""

    def __init__(
        self,
        nsjail: Nsjail,
        image: Image,
        *,
        folder: Path,
        cgroups: Cgroups,
        written_mb: int,
        open_review: Callable[[], Awaitable[Image]],
        test_network: Callable[[], Awaitable[None]],
        root: OwnRoot | None = None,
        internet: Callable[[], Internet] = Internet,
        limits: Limits | None = None,
    ) -> None:
        """Keep the configuration files of jails in the folder; `open_review` makes the image that checks need.

        `test_network` proves that commands reach no more than their proxy, and is asked whenever one is to reach some.
        Commands run in `root`, if there is one; file tools and checks never do.
        """
        self.nsjail = nsjail
        self.image = image
        self.cgroups = cgroups
        self._folder = folder
        self.written_mb = written_mb
        self._limits = limits or shell_limits()
        self._open_review = open_review
        self._test_network = test_network
        self._root = root
        self._internet = internet
        self._review: Image | None = None
        self._reviewing = asyncio.Lock()

    async def files(
        self, workspace: Workspace, uid: int, call: WorkspaceCall, *, writable: bool, show: bool = False
    ) -> dict[str, Any] | str:
        """Return the answer of a file tool, or what it would change, or one line that says why it did nothing.

        Raises SandboxLost when its jail failed, IsolationUnavailable when none could be made.
        """
        limits = _narrowed(file_limits(), call)
        ended = await run_jailed(
            self._command(workspace, uid, limits, seconds=_FILES_S, writable=writable),
            interpreter_arguments(FILES),
            CommandBounds(seconds=_FILES_S, kept=2 * MOST_ANSWER, output=MOST_ANSWER, watch=self._watch(limits)),
            fed=json_frame({"tool": call.tool, "arguments": call.arguments, "show": show}),
        )
        self._require_jail(ended)
        if ended.reason or ended.exit_code:
            why = ended.reason or f"it ended with {ended.exit_code}: {ended.stderr.text.strip()[-200:]}"
            why = " ".join(why.split())
            # A look that takes too much says nothing of the change itself.
            return {"diff": f"(no diff: {why})\n"} if show else f"{call.tool} was ended: {why}; ask for less at once"
        return read_answer("show" if show else call.tool, ended.stdout.kept)

    async def shell(
        self, workspace: Workspace, uid: int, call: WorkspaceCall, *, writable: bool, heard: Heard | None = None
    ) -> tuple[CommandOutcome, JailUse]:
        """Run a shell command line, and tell what it used; the hosts that its call names are reached by a proxy.

        Raises IsolationUnavailable when no jail could be made.
        """
        limits = _narrowed(self._limits, call)
        most = call.limits.narrowing(artifacts_mb=self.written_mb)["artifacts_mb"]
        watch = await asyncio.to_thread(self._watch, limits, workspace.root if writable else None, most)
        command = (*self._shell, str(call.arguments.get("command", "")))
        bounds = CommandBounds(seconds=call.seconds, watch=watch, heard=heard)
        more: dict[str, Any] = {"image": self.root}
        jail = partial(self._command, workspace, uid, limits, seconds=call.seconds, writable=writable, root=self._root)
        if sites := sites_of(call.arguments):
            ended, reached = await self._networked(sites, jail, command, bounds)
            more |= reached
        else:
            ended = await run_jailed(jail(), command, bounds)
        self._require_jail(ended)
        seen = round(watch.peak / (1 << 20), 1) or None
        printed = ended.stdout.total + ended.stderr.total
        return ended, JailUse(cpu_s=ended.cpu_s, memory_mb=seen, output_bytes=printed, **more)

    @property
    def root(self) -> str:
        """The operator's own root in which commands run, as people are told it; empty when there is none."""
        return "" if self._root is None else self._root.name

    @property
    def _shell(self) -> tuple[str, ...]:
        return _SHELL if self._root is None else self._root.shell

    async def _networked(
        self, sites: Sequence[Site], jail: Callable[..., list[str]], command: Sequence[str], bounds: CommandBounds
    ) -> tuple[CommandOutcome, dict[str, Any]]:
        """Run a command that reaches these sites, and tell what it reached."""
        await self._test_network()
        proxy = Proxy(sites, self._internet())
        async with open_bridge(proxy) as bridge:
            ended = await run_jailed(
                jail(kind="network", way=bridge.way), command, replace(bounds, passed=(bridge.way,))
            )
        if not bridge.made and ended.reason is None:
            cause = ended.stderr.text.strip()[-200:]
            fix = "let the worker make user and network namespaces"
            raise IsolationUnavailable(f"no jail could be made: {cause}; {fix}", cause=cause, fix=fix)
        ended.notes += proxy.notes
        return ended, {"reached": proxy.reached, "refused": proxy.refused}

    async def check(
        self, workspace: Workspace, uid: int, arguments: dict[str, Any], *, seconds: float
    ) -> dict[str, Any] | str:
        """Return what a check of the workspace's code found, or one line that says why it could not be made.

        Nothing is written to the workspace. Raises ImageMissing, SandboxLost and IsolationUnavailable.
        """
        async with self._reviewing:
            if self._review is None:
                self._review = await self._open_review()
        limits = review_limits()
        ended = await run_jailed(
            self._command(workspace, uid, limits, seconds=seconds, writable=False, image=self._review),
            ("/usr/bin/python3", "-s", "-P", "-B", "-X", "utf8", REVIEW),
            CommandBounds(
                seconds=seconds + _ANSWER_S, kept=2 * MOST_ANSWER, output=MOST_ANSWER, watch=self._watch(limits)
            ),
            fed=json_frame(arguments | {"seconds": seconds}),
        )
        self._require_jail(ended)
        if ended.reason or ended.exit_code:
            why = ended.reason or f"it ended with {ended.exit_code}: {ended.stderr.text.strip()[-200:]}"
            return f"the check was ended: {' '.join(why.split())}"
        try:
            return read_answer("check", ended.stdout.kept)
        except SandboxLost as error:
            # Unlike that of a file tool, this answer passes beside code that is run.
            return f"the check gave no answer that can be read: {error}"

    def _command(
        self,
        workspace: Workspace,
        uid: int,
        limits: Limits,
        *,
        seconds: float,
        writable: bool,
        image: Image | None = None,
        kind: ProfileKind = "shell",
        way: int = -1,
        root: OwnRoot | None = None,
    ) -> list[str]:
        profile = JailProfile(
            self.nsjail,
            image or self.image,
            kind=kind,
            root=root,
            limits=limits.model_copy(update={"time_limit_s": round(seconds) + _BACKSTOP_S}),
            outside_uid=uid,
            cgroups=self.cgroups,
            workspace=workspace.root,
            writable=writable,
        )
        return profile.start(self._folder, "--quiet", way=way)

    def _watch(self, limits: Limits, root: Path | None = None, written_mb: int = 0) -> JailWatch:
        return JailWatch(memory_mb=limits.memory_mb, root=root, written_mb=written_mb)

    def _require_jail(self, ended: CommandOutcome) -> None:
        log = ended.log.decode("utf-8", "replace")
        if ended.exit_code == _FAILED and "[F]" in log and ended.reason is None:
            cause, fix = likely_cause(log, self.image, self.cgroups)
            raise IsolationUnavailable(f"no jail could be made: {cause}; {fix}", cause=cause, fix=fix)


async def try_root(profile: JailProfile, folder: Path) -> None:
    """Start the shell of a profile's own root; raises IsolationUnavailable when it does not, or can write there."""
    assert profile.root is not None  # noqa: S101 - what is tried
    command = (*profile.root.shell, _TRIAL)
    ended = await run_jailed(profile.start(folder, "--quiet"), command, CommandBounds(seconds=_TRIAL_S))
    if ended.exit_code or ended.stdout.text != "started\n":
        said = " ".join(f"{ended.stdout.text} {ended.stderr.text} {ended.log.decode(errors='replace')}".split())
        cause = f"the shell of {profile.root.path} does not start as it should: {said[-300:] or ended.reason}"
        fix = "take an image for this processor that the jails' user can read, or leave BACKSTAY_SHELL_ROOT out"
        raise IsolationUnavailable(f"{cause}; {fix}", cause=cause, fix=fix)


def _narrowed(limits: Limits, call: WorkspaceCall) -> Limits:
    """Return the limits of a jail as far as the call leaves them."""
    return limits.model_copy(update=call.limits.narrowing(memory_mb=limits.memory_mb, cpu_s=limits.cpu_s))
