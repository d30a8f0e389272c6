"""Write a manifest to a folder and read it; readers never see it half written."""

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from backstay.errors import SettingsInvalid, ToolboxInvalid
from system.files import sync
from system.locks import file_lock
from toolbox.catalog.naming import file_name
from toolbox.manifest.manifest import Manifest, ManifestProvider, ManifestTool

HEAD = "manifest.json"
_LIST = "providers.json"
_TRIES = 3


def files_of(manifest: Manifest, package: dict[str, str]) -> dict[str, bytes]:
    """Return every file except manifest.json by relative path; equal manifests have equal files."""
    tools = {name: {tool.mcp_tool_name: tool.path for tool in manifest.of(name)} for name in manifest.providers}
    providers = {name: provider.plain() for name, provider in manifest.providers.items()}
    return {
        _LIST: _written(providers),
        **{
            provider.path: _written(provider.plain() | {"tool_files": tools[name]})
            for name, provider in manifest.providers.items()
        },
        **{tool.path: _written(tool.plain()) for tool in manifest.tools.values()},
        **{path: source.encode() for path, source in package.items()},
    }


def head_of(manifest: Manifest, package: dict[str, str], generated: str) -> bytes:
    """Return manifest.json; only this file says when the manifest was made."""
    granted = [provider for provider in manifest.providers.values() if provider.granted]
    counts = {
        "providers": len(granted),
        "available": sum(provider.available for provider in granted),
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
        providers = {name: ManifestProvider.model_validate(provider) for name, provider in listed.items()}
        tools = [
            ManifestTool.model_validate(_parsed(_beneath(place, path)))
            for provider in providers.values()
            for path in _parsed(_beneath(place, provider.path))["tool_files"].values()
        ]
        by_name = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
        return Manifest.model_validate(head | {"providers": providers, "tools": by_name})
    except (ValidationError, AttributeError, KeyError, TypeError) as error:
        raise ToolboxInvalid(
            f"{place}: not a manifest ({type(error).__name__}); write it with `backstay tools refresh`"
        ) from None


def _beneath(place: Path, path: str) -> Path:
    found = (place / path).resolve()
    if not found.is_relative_to(place):
        raise ToolboxInvalid(
            f"{place}: {path[:100]!a} points outside the manifest; write it with `backstay tools refresh`"
        )
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


_VERSIONS = ".versions"


def folder_of(home: Path, user_id: str) -> Path:
    """Return where the manifest of a user lies: no two users share it, whatever they are called."""
    # Where a file system takes upper case for lower case, `Ana` and `ana` must differ in more than that.
    name = user_id if user_id == user_id.lower() else f"{user_id.lower()}/{user_id}"
    return home.absolute() / "toolbox" / file_name(name)


def keep(manifest: Manifest, package: dict[str, str], place: Path) -> bool:
    """Make `place` lead to the manifest, in one step; return False when it already did.

    `place` is a symbolic link to one of several versions. The remains of a crash are removed the next time, and so is
    every version but this one and the one before it, which someone may still be reading. Raises SettingsInvalid when it
    cannot be written.
    """
    versions = place.parent / _VERSIONS / place.name
    files = files_of(manifest, package)
    try:
        versions.mkdir(parents=True, exist_ok=True)
        with file_lock(versions / ".lock"):
            before = place.resolve()
            generated = generated_in(before)
            if generated is not None and _holds(before, {**files, HEAD: head_of(manifest, package, generated)}):
                _prune(versions, {before})
                return False
            now = datetime.now(UTC).isoformat(timespec="seconds")
            fresh = versions / f"{manifest.version}-{uuid.uuid4().hex[:8]}"
            _write(fresh, {**files, HEAD: head_of(manifest, package, now)})
            _lead(place, fresh)
            _prune(versions, {before, fresh.resolve()})
    except OSError as error:
        raise SettingsInvalid(
            f"BACKSTAY_HOME: the manifest cannot be written to {place}: {error.strerror or type(error).__name__}; "
            "make room there, or name a folder that can be written"
        ) from None
    return True


def _holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    try:
        return all((folder / path).read_bytes() == data for path, data in files.items())
    except OSError:
        return False


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files, then wait until all of them are on the disk: one by one would take many times as long."""
    folders = {folder}
    for path, data in files.items():
        file = folder / path
        if file.parent not in folders:
            folders |= {file.parent, *(parent for parent in file.parents if parent.is_relative_to(folder))}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    for place in [*(folder / path for path in files), *folders]:
        sync(place)


def _lead(place: Path, folder: Path) -> None:
    link = folder.parent / ".link"
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(folder, place.parent))
    sync(folder.parent)
    link.replace(place)
    sync(place.parent)


def _prune(versions: Path, kept: set[Path]) -> None:
    for version in versions.iterdir():
        if version.is_dir() and version.resolve() not in kept:
            # A file that cannot be removed, such as one that a jail still uses, is tried again next time.
            shutil.rmtree(version, ignore_errors=True)
