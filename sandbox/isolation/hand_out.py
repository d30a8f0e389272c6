"""Start a command in the present network namespace once a socket listens there, whose other end is the jail's proxy.

Run by path, with `FD NOT COMMAND...`: through the socket FD, the listening socket goes to whoever started this, who
alone answers there; with -1 nobody does. NOT is the namespace of whoever started this, in which nothing is started.
"""

import fcntl
import os
import socket
import struct
import sys

PORT = 3128
"""Where the proxy is found, at 127.0.0.1 of the namespace."""
FAILED = 255
_BACKLOG = 64
_BUFFER = 212_992
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41


def namespace() -> int:
    """Return the number of the network namespace that this process is in."""
    return os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 - what it leads to


def listening() -> socket.socket:
    """Return a socket that listens inside, once the namespace can speak to itself."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    fcntl.ioctl(made, _SET_FLAGS, struct.pack("16sH22x", b"lo", _UP_AND_RUNNING))
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        made.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    made.bind(("127.0.0.1", PORT))
    made.listen(_BACKLOG)
    return made


def main(way: int, other: int, command: list[str]) -> None:
    """Become the command; raises OSError where something of this fails."""
    if namespace() == other:
        raise OSError("the network is the machine's")
    with listening() as made:
        if way >= 0:
            with socket.socket(fileno=way) as out:
                socket.send_fds(out, [b"."], [made.fileno()])
    os.execv(command[0], command)  # noqa: S606 - what this is for


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    except OSError as error:
        sys.stderr.write(f"no network of its own could be made: {error}\n")
        sys.exit(FAILED)
