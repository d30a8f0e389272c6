"""List providers and tools, from an open toolbox or from a folder that a builder wrote."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backstay.errors import ToolNotFound
from toolbox.manifest.builder import ToolboxBuilder
from toolbox.manifest.files import read_manifest
from toolbox.manifest.manifest import Manifest

if TYPE_CHECKING:
    from toolbox.toolbox import Toolbox


async def list_domains(user_id: str = "singleton", *, toolbox: "Toolbox | Path") -> list[str]:
    """Return the names of the providers that the user is granted, sorted."""
    return _domains(await _manifest(user_id, toolbox))


async def list_methods(domain: str, user_id: str = "singleton", *, toolbox: "Toolbox | Path") -> list[str]:
    """Return the names of a provider's tools, sorted; raises ToolNotFound when there is no such provider."""
    manifest = await _manifest(user_id, toolbox)
    _check(manifest, domain)
    return sorted(tool.mcp_tool_name for tool in manifest.of(domain))


async def get_method_info(
    cls: str, method: str, user_id: str = "singleton", *, toolbox: "Toolbox | Path"
) -> dict[str, Any]:
    """Return all of one tool as plain JSON: safety, description, parameters, definition, whether it is available.

    `cls` is the provider. Raises ToolNotFound naming what comes close.
    """
    manifest = await _manifest(user_id, toolbox)
    _check(manifest, cls)
    tool = manifest.find(f"{cls}.{method}")
    reason = manifest.reason(tool)
    return tool.plain() | {"available": reason is None, "reason": reason}


async def _manifest(user_id: str, toolbox: "Toolbox | Path") -> Manifest:
    """Return what the toolbox is now, or what the folder says; a folder is that of one user already."""
    if isinstance(toolbox, Path):
        return await asyncio.to_thread(read_manifest, toolbox)
    return await ToolboxBuilder(toolbox, Path()).manifest(user_id)


def _domains(manifest: Manifest) -> list[str]:
    return sorted(name for name, provider in manifest.providers.items() if provider.granted)


def _check(manifest: Manifest, domain: str) -> None:
    known = _domains(manifest)
    if domain not in known:
        raise ToolNotFound(f"there is no provider {domain[:100]!a}; there are {', '.join(known) or 'none'}")
