"""Find out whether a port is free, and who holds it when it is not."""

import socket
from pathlib import Path

from backstay.errors import SettingsInvalid
from backstay.shown import one_line

_LISTENING = "0A"
_PROC = Path("/proc")


def require_free(port: int, flag: str) -> None:
    """Raise SettingsInvalid, naming the holder where that can be seen, when nothing new can listen on the port."""
    if not 0 < port < 65536:
        raise SettingsInvalid(f"{flag}: {port} is not a port; give one from 1 to 65535")
    if not is_free(port):
        raise SettingsInvalid(f"{flag}: port {port} is taken{holder(port)}; end that process or choose another {flag}")


def is_free(port: int) -> bool:
    """Return whether something new can listen on a loopback port."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(wanted: int = 0) -> int:
    """Return the wanted port when it is free, else any free one."""
    if wanted and is_free(wanted):
        return wanted
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


def holder(port: int) -> str:
    """Return ` by process 17 (name)`, or nothing when that cannot be seen from here."""
    inodes = {inode for table in ("tcp", "tcp6") for inode in _inodes(table, port)}
    for process in _PROC.glob("[0-9]*") if inodes else ():
        try:
            held = {str(link.readlink()) for link in (process / "fd").iterdir()}
            name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        if any(f"socket:[{inode}]" in held for inode in inodes):
            return f" by process {process.name} ({one_line(name, 60)})"
    return ""


def _inodes(table: str, port: int) -> set[str]:
    try:
        lines = (_PROC / "net" / table).read_text(encoding="utf-8").splitlines()[1:]
    except OSError:
        return set()
    rows = [line.split() for line in lines]
    return {row[9] for row in rows if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port}
