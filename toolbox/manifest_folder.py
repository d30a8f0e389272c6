"""Keep a manifest in a folder that a reader never sees half written."""

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from backstay.errors import SettingsInvalid
from toolbox.manifest import Manifest
from toolbox.manifest_files import HEAD, files_of, generated_in, head_of
from toolbox.naming import file_name

_VERSIONS = ".versions"


def folder_of(home: Path, user_id: str) -> Path:
    """Return where the manifest of a user lies: no two users share it, whatever they are called."""
    # Where a file system takes upper case for lower case, `Ana` and `ana` must differ in more than that.
    name = user_id if user_id == user_id.lower() else f"{user_id.lower()}/{user_id}"
    return home.absolute() / "toolbox" / file_name(name)


def keep(manifest: Manifest, package: dict[str, str], place: Path) -> bool:
    """Make `place` lead to the manifest, in one step; return False when it already did.

    `place` is a symbolic link to one of several versions. What a crash leaves is removed the next time, and so is
    every version but this one and the one before it, which someone may still be reading.
    Raises SettingsInvalid when it cannot be written.
    """
    versions = place.parent / _VERSIONS / place.name
    files = files_of(manifest, package)
    try:
        versions.mkdir(parents=True, exist_ok=True)
        with _alone(versions):
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


@contextlib.contextmanager
def _alone(versions: Path) -> Generator[None]:
    """Let one process at a time write; the lock goes with the process that holds it."""
    with (versions / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
            folders |= {file.parent, *(one for one in file.parents if one.is_relative_to(folder))}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    for one in [*(folder / path for path in files), *folders]:
        _flush(one)


def _lead(place: Path, folder: Path) -> None:
    link = folder.parent / ".link"
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(folder, place.parent))
    _flush(folder.parent)
    link.replace(place)
    _flush(place.parent)


def _flush(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _prune(versions: Path, kept: set[Path]) -> None:
    for one in versions.iterdir():
        if one.is_dir() and one.resolve() not in kept:
            # A file that will not go, such as one that a jail still uses, is tried again the next time.
            shutil.rmtree(one, ignore_errors=True)
