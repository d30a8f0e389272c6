"""The abilities of every kind of provider, and the call it is given."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from backstay.errors import Transient
from backstay.python_tools.safety import Ask, Deny
from backstay.tools.tool import WorkspaceLimits
from toolbox.providers.answer import Answer
from toolbox.providers.elicitation import InputResponse
from toolbox.providers.listing import Listing

Judge = Callable[[str, str, dict[str, Any]], Awaitable[Ask | Deny | None]]
"""Returns what the operator's own checks say against a call: provider, tool as the server knows it, arguments."""
Sent = Callable[[], Awaitable[None]]
"""Awaited immediately before a request leaves; it commits the intent."""


NOBODYS = "its connections are of users, and nobody proved to have started this run; see docs/connections.md"
"""Why a run is offered nothing of a provider at which each user signs in."""


@dataclass(frozen=True, slots=True)
class WorkspaceAccess:
    """Name the workspace that a call may use, its run, and whether it may write there."""

    run: str
    workspace: str
    place: str = ""
    """Where the workspace is; a worker of another place refuses the call."""
    writable: bool = False
    rehearsal: str = ""
    """The rehearsal whose copy of the workspace is used instead; empty outside of rehearsals."""
    limits: WorkspaceLimits | None = None
    """What the call may use of its jail, when that is less than usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Name for whom a call is made."""

    user_id: str = "singleton"
    session_id: str = ""
    """Empty when the task names none."""
    owner: str = ""
    """Whose connections and memory the run has; nobody's where nobody proved to have started it."""
    patience_s: float | None = None
    """How long a call waits for its turn where calls run one after another; None: as long as for its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCall:
    """Hold one request to a provider."""

    tool: str
    """The tool's name as the server knows it."""
    arguments: dict[str, Any]
    deadline_s: float
    effect_id: str | None = None
    before_send: Sent | None = None
    on_progress: Callable[[str], None] | None = None
    """Called with one line about the progress that the tool reports."""
    follows: bool = False
    """Whether the server may answer by a task, since whoever calls asks for its state until it ends."""
    reply: InputResponse | None = None
    """What a person answered when the tool was called before and asked."""
    still_listed: Callable[[Listing], None] | None = None
    """Raises when the tool is no longer the one that was ruled on; called once the connection is open."""
    still_granted: Callable[[], Awaitable[None]] | None = None
    """Raises when the tool may no longer be called without asking; called right before `before_send`."""
    workspace_access: WorkspaceAccess | None = None
    """None: the run was given no workspace."""
    caller: Caller = Caller()
    judge: Judge | None = None
    """Asked about each call that the tool makes on its way, before it is sent."""

    def relisted(self, listed: Callable[[Listing], Listing]) -> "ProviderCall":
        """Return the call whose maker hears of tools as they are `listed`."""
        still_listed = self.still_listed
        if still_listed is None:
            return self
        return replace(self, still_listed=lambda found: still_listed(listed(found)))


class NotSent(Transient):
    """The provider refused the request before the tool saw it."""

    def __init__(self, message: str, *, retry_after_s: float | None = None, login: bool = False) -> None:
        """Set the reason, how long the server asks to wait, and whether it wants other credentials."""
        super().__init__(message, retry_after=retry_after_s)
        self.retry_after_s = retry_after_s
        self.login = login


class Provider(Protocol):
    """Offer tools: list them, call them, and release everything at the end."""

    name: str
    kind: str
    """What it is, in one word for people: `mcp`."""

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return the tools; a server that cannot be reached is a reason in the listing, never an error."""
        ...

    async def call(self, call: ProviderCall) -> Answer:
        """Call one tool; ToolUnavailable before, NotSent or OutcomeUnknown after `before_send`."""
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...


@runtime_checkable
class PerUser(Protocol):
    """Be a provider that offers each user what is theirs."""

    @property
    def needs_owner(self) -> bool:
        """Return whether it offers nothing to runs that nobody proved to have started."""
        ...

    def of(self, owner: str) -> Provider:
        """Return what it offers to the owner of a run; to nobody, no more than anybody may see."""
        ...


@runtime_checkable
class StartableProvider(Protocol):
    """Be a provider that has to start before it can list its tools."""

    async def wait_started(self, patience_s: float) -> None:
        """Wait so long for a first start; one that has failed is not waited for."""
        ...
