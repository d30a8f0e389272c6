"""Write what a user's toolbox is to disk, for people and for programs that do not open it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from backstay.policies.policy import Policy
from backstay.redaction.redactor import Redactor
from toolbox.bindings.package import render_package
from toolbox.catalog.definition import Definition
from toolbox.manifest.files import folder_of, keep
from toolbox.manifest.making import make_manifest
from toolbox.manifest.manifest import Manifest

if TYPE_CHECKING:
    from toolbox.catalog.catalog import Catalog
    from toolbox.toolbox import Toolbox


@dataclass(frozen=True, kw_only=True, slots=True)
class Refreshed:
    """Hold a manifest and where it lies now."""

    manifest: Manifest
    folder: Path
    """Holds `manifest.json`, `providers.json`, `providers/` and `sandbox_py/`; always whole."""
    changed: bool
    """Whether anything had to be written."""


class ToolboxBuilder:
    """Make manifests of a toolbox; nothing that it knows as a secret is ever in one."""

    def __init__(
        self, toolbox: "Toolbox", home: Path, *, policy: Policy | None = None, secrets: frozenset[str] = frozenset()
    ) -> None:
        """Write beneath `home`; `policy` says which tools are denied, `secrets` what else must not be shown."""
        self._toolbox = toolbox
        self._home = home
        self._policy = policy or Policy()
        self._redactor = Redactor(toolbox.secrets | secrets)

    async def manifest(self, user_id: str = "singleton", *, fresh: bool = False) -> Manifest:
        """Return the manifest of a user without writing anything."""
        catalog = await self._toolbox.catalog(user_id, fresh=fresh)
        return (await asyncio.to_thread(self._make, user_id, catalog))[0]

    async def refresh_manifest(self, user_id: str = "singleton") -> Refreshed:
        """Ask every server for its tools anew and bring the user's folder up to date; what is unchanged stays.

        Raises ToolboxInvalid when two tools would be called by one name, SettingsInvalid when nothing can be written.
        """
        catalog = await self._toolbox.catalog(user_id, fresh=True)
        return await asyncio.to_thread(self._refresh, user_id, catalog)

    def _make(self, user_id: str, catalog: "Catalog") -> tuple[Manifest, list[Definition]]:
        return make_manifest(user_id, catalog, policy=self._policy, redactor=self._redactor)

    def _refresh(self, user_id: str, catalog: "Catalog") -> Refreshed:
        manifest, definitions = self._make(user_id, catalog)
        folder = folder_of(self._home, user_id)
        changed = keep(manifest, render_package(definitions), folder)
        return Refreshed(manifest=manifest, folder=folder, changed=changed)
