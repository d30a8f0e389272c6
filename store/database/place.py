"""Find the database, and create the files that must exist before it is opened."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import structlog
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from backstay.errors import SettingsInvalid
from system.files import close_to_others, database_files, make_private_directory

_log = structlog.get_logger(__name__)

_NETWORK = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "fuse.ceph",
        "fuse.davfs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.goofys",
        "fuse.juicefs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.smbnetfs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "orangefs",
        "pvfs2",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
    }
)
_OCTAL = re.compile(r"\\([0-7]{3})")


def network_filesystem(path: PurePosixPath, mounts: str) -> str | None:
    """Return the type of the network filesystem that holds an absolute path, or None for a local one.

    `mounts` is the text of `/proc/mounts`; if two mounts share a mount point, the later one counts, as in the kernel.
    """
    longest, found = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        place = PurePosixPath(_OCTAL.sub(lambda code: chr(int(code.group(1), 8)), fields[1]))
        if len(place.parts) >= longest and path.is_relative_to(place):
            longest, found = len(place.parts), fields[2]
    return found if found in _NETWORK else None


def network_filesystem_here(path: Path) -> str | None:
    """Return the type of the network filesystem for a path on this machine; None if there is no `/proc/mounts`."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return network_filesystem(PurePosixPath(path.resolve()), mounts)


_DRIVERS = {
    "sqlite+aiosqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}
_SEVERAL_HOSTS = re.compile(
    r"(?P<before>postgres(?:ql)?(?:\+\w+)?://(?:[^:/]*(?::[^@]*)?@)?+)(?P<hosts>[^/?@]*,[^/?@]*)(?P<after>(?:[/?].*)?)"
)
"""What SQLAlchemy cannot parse and Postgres's own tools can, such as `postgresql://user@a:5432,b:5432/name`."""


@dataclass(frozen=True)
class DatabaseLocation:
    """Locate the database; `file` is None when it is a server."""

    url: URL
    file: Path | None

    @property
    def shown(self) -> str:
        """Return the address without its password, wherever that is in it."""
        hidden = {name: "***" for name in self.url.query if "password" in name}
        return self.url.update_query_dict(hidden).render_as_string(hide_password=True)


def place_of(database_url: str | None, home: Path) -> DatabaseLocation:
    """Parse the setting; without one, the database is a file in `home`.

    Raises SettingsInvalid for anything that is neither a SQLite file nor PostgreSQL.
    """
    if not database_url:
        database_url = URL.create("sqlite", database=str(home / "backstay.db")).render_as_string()
    try:
        url = _parsed(database_url)
    except (ArgumentError, ValueError):
        raise SettingsInvalid(
            "BACKSTAY_DATABASE_URL: not a database URL; write sqlite:///path/to/file or postgresql://user@host/name"
        ) from None
    url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
    match url.drivername:
        case "postgresql+asyncpg":
            return DatabaseLocation(url, None)
        case "sqlite":
            return DatabaseLocation(url, _file_of(url))
        case other:
            raise SettingsInvalid(f"BACKSTAY_DATABASE_URL: {other!r} is not supported; use sqlite or postgresql")


def _parsed(database_url: str) -> URL:
    """Parse an address; several hosts in front of the question mark are put behind it, where none are."""
    found = _SEVERAL_HOSTS.fullmatch(database_url)
    if found is None:
        return make_url(database_url)
    url = make_url(found["before"] + found["after"])
    return url if "host" in url.query else url.update_query_dict({"host": unquote(found["hosts"])})


def _file_of(url: URL) -> Path:
    name = url.database or ""
    if name in {"", ":memory:"} or name.startswith("file:"):
        raise SettingsInvalid(
            f"BACKSTAY_DATABASE_URL: {name!r} is not a plain file name; write sqlite:///path/to/file, "
            "since a store in memory would forget which effects were sent"
        )
    return Path(name).absolute()


def make_ready(file: Path) -> None:
    """Create the database file and its directories for this user only.

    Raises SettingsInvalid when the file is on a network filesystem or cannot be created.
    """
    network = network_filesystem_here(file.parent)
    if network is not None:
        raise SettingsInvalid(
            f"BACKSTAY_DATABASE_URL: {file} lies on a network filesystem ({network}), where SQLite's locks do not "
            "hold; use a local disk, or PostgreSQL for several hosts"
        )
    try:
        make_private_directory(file.parent)
        # Closing a file drops every lock that this process holds on it, even those of an open store. So only a new
        # file is opened here.
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        _mend_modes(file)
    except OSError as error:
        raise SettingsInvalid(f"BACKSTAY_DATABASE_URL: cannot use {file}: {error.strerror}") from error


def _mend_modes(file: Path) -> None:
    """Close a database to other users that was restored, or copied, open to them, and say so."""
    opened = [path.name for path in database_files(file) if close_to_others(path, 0o600)]
    if opened:
        _log.warning("store.closed_to_others", folder=str(file.parent), files=opened)
