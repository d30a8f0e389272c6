"""What the bodies of the menu work with; built once per worker."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import openai
from temporalio.client import Client

from backstay.asks import OfRun
from backstay.policy import Policy
from backstay.redaction import Redactor
from backstay.settings import Settings
from sandbox.workspace_client import WorkspaceClient
from store.store import Store
from toolbox.catalog import Catalog
from toolbox.toolbox import Toolbox


async def no_sandbox() -> str:
    """Offer no programs."""
    return ""


@dataclass(frozen=True)
class Resources:
    """Hold the open resources of one worker."""

    settings: Settings
    store: Store
    toolbox: Toolbox
    policy: Policy
    redactor: Redactor
    model: openai.AsyncOpenAI
    temporal: Client
    search_attributes: bool = False
    find_sandbox: Callable[[], Awaitable[str]] = no_sandbox
    """Returns the queue of the sandbox role when a worker polls it."""
    workspaces: WorkspaceClient | None = None
    """Claims workspaces for runs, and lets them go."""


class Body:
    """Give an activity class its resources and the checks that all of them make first."""

    def __init__(self, resources: Resources) -> None:
        """Share the worker's resources."""
        self.resources = resources
        self.settings = resources.settings
        self.store = resources.store
        self.toolbox = resources.toolbox
        self.transient_s = resources.settings.transient_seconds

    async def catalog(self, ask: OfRun, user_id: str) -> Catalog:
        """Return what a run's user sees now, with the workspace that the run was given."""
        return await self.toolbox.catalog(user_id, builtin=frozenset(ask.builtin))
