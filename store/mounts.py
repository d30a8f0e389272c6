"""Tell whether a path lies on a filesystem of another host, where SQLite's locks do not hold."""

import re
from pathlib import Path, PurePosixPath

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
    """Return the type of the network filesystem that holds an absolute path, or None when it is a local one.

    `mounts` is the text of `/proc/mounts`; of two mounts at one place the later one counts, as in the kernel.
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
    """Return the same for this machine; None where the kernel does not list its mounts."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    return network_filesystem(PurePosixPath(path.resolve()), mounts)
