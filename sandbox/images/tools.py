"""The shell and the ordinary tools of a workspace's jail: copies of this machine's, with the libraries they need.

Copies have no set-uid bit, and nothing else of the machine comes with them: no configuration, no accounts, no keys.
"""

from pathlib import Path

from backstay.data_files import data_beside
from sandbox.images.elf import Libraries, is_elf

Plan = dict[str, Path | bytes]
"""Where a file is in the image, and where it comes from or what it holds."""

TOOLS = tuple[str, ...](data_beside(__file__)["names"].split())
"""What is copied when this machine has it."""

_FOLDERS = (Path("/usr/bin"), Path("/bin"), Path("/usr/local/bin"))
_GUEST = Path(__file__).parents[1] / "guest"
# Where older C libraries look for the locale that jails have; newer ones have it built in.
_LOCALES = tuple(Path("/usr/lib/locale", name) for name in ("C.utf8", "C.UTF-8"))
# Whom the machine trusts to vouch for hosts: commands that reach some need it, and it is not a secret.
_VOUCHING = "etc/ssl/certs/ca-certificates.crt"
_AUTHORITIES = tuple(
    Path(place) for place in (f"/{_VOUCHING}", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
)
_ACCOUNTS: Plan = {
    "etc/passwd": b"jail:x:1000:1000::/tmp:/bin/sh\n",
    "etc/group": b"jail:x:1000:\n",
    "etc/nsswitch.conf": b"passwd: files\ngroup: files\n",
}


def plan_tools(libraries: Libraries) -> Plan:
    """List the tools that are here, and the programs of jails; the needs of a tool are added to the libraries.

    A tool that misses a library stays out, as it would not run here either.
    """
    plan = dict(_ACCOUNTS)
    if (authorities := next((place for place in _AUTHORITIES if place.is_file()), None)) is not None:
        plan[_VOUCHING] = authorities.resolve()
    for part in ("files", "review"):
        plan |= {f"usr/lib/backstay/{part}/{path.name}": path for path in sorted((_GUEST / part).glob("*.py"))}
    for path in (path for folder in _LOCALES for path in sorted(folder.rglob("*")) if path.is_file()):
        plan[path.relative_to("/").as_posix()] = path
    for name in TOOLS:
        found = next((folder / name for folder in _FOLDERS if (folder / name).is_file()), None)
        if found is not None and _usable(found.resolve(), libraries):
            plan[f"usr/bin/{name}"] = found.resolve()
    return plan


def _usable(path: Path, libraries: Libraries) -> bool:
    if is_elf(path):
        return libraries.add(path) is None
    try:
        first = path.open("rb").readline(128).split()
    except OSError:
        return False
    return first[:1] in ([b"#!/bin/sh"], [b"#!/bin/bash"], [b"#!/usr/bin/sh"], [b"#!/usr/bin/bash"])
