"""Write a manifest as files and read it back."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from backstay.errors import ToolboxInvalid
from toolbox.manifest import Manifest, ManifestProvider, ManifestTool

HEAD = "manifest.json"
_LIST = "providers.json"
_TRIES = 3


def files_of(manifest: Manifest, package: dict[str, str]) -> dict[str, bytes]:
    """Return every file but the head by relative path; equal manifests have equal files."""
    tools = {name: {tool.mcp_tool_name: tool.path for tool in manifest.of(name)} for name in manifest.providers}
    providers = {name: provider.plain() for name, provider in manifest.providers.items()}
    return {
        _LIST: _written(providers),
        **{one.path: _written(one.plain() | {"tool_files": tools[name]}) for name, one in manifest.providers.items()},
        **{tool.path: _written(tool.plain()) for tool in manifest.tools.values()},
        **{path: source.encode() for path, source in package.items()},
    }


def head_of(manifest: Manifest, package: dict[str, str], generated: str) -> bytes:
    """Return the file that speaks for all others; only it says when it was made."""
    granted = [one for one in manifest.providers.values() if one.granted]
    counts = {
        "providers": len(granted),
        "available": sum(one.available for one in granted),
        "tools": len(manifest.tools),
        "py_files": len(package),
    }
    head = manifest.model_dump(mode="json", include={"user_id", "version", "problems"})
    return _written(head | {"generated": generated, "counts": counts, "providers": list(manifest.providers)})


def generated_in(folder: Path) -> str | None:
    """Return when the manifest in a folder was made, or None when there is none that says so."""
    try:
        said = json.loads((folder / HEAD).read_bytes())["generated"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return said if isinstance(said, str) else None


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in a folder, all of one version, also while it is being replaced.

    Raises ToolboxInvalid naming the file that is missing or broken.
    """
    for _ in range(_TRIES - 1):
        place = folder.resolve()
        try:
            return _read(place)
        except ToolboxInvalid:
            if folder.resolve() == place:
                raise
    return _read(folder.resolve())


def _read(place: Path) -> Manifest:
    head = _parsed(place / HEAD)
    try:
        listed = _parsed(place / _LIST)
        providers = {name: ManifestProvider.model_validate(one) for name, one in listed.items()}
        tools = [
            ManifestTool.model_validate(_parsed(_beneath(place, path)))
            for provider in providers.values()
            for path in _parsed(_beneath(place, provider.path))["tool_files"].values()
        ]
        by_name = {tool.name: tool for tool in sorted(tools, key=lambda one: one.name)}
        return Manifest.model_validate(head | {"providers": providers, "tools": by_name})
    except (ValidationError, AttributeError, KeyError, TypeError) as error:
        raise ToolboxInvalid(f"{place}: this is no manifest: {type(error).__name__}; write it anew") from None


def _beneath(place: Path, path: str) -> Path:
    found = (place / path).resolve()
    if not found.is_relative_to(place):
        raise ToolboxInvalid(f"{place}: {path[:100]!a} leads out of the manifest; write it anew")
    return found


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ToolboxInvalid(
            f"{path}: cannot be read ({type(error).__name__}); write it with `backstay tools refresh`"
        ) from None


def _written(value: Any) -> bytes:
    return f"{json.dumps(value, indent=2)}\n".encode()
