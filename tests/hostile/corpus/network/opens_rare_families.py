# holds: no_breach
# ends: finished
import socket

ASKED = [
    ("AF_PACKET", "SOCK_RAW", 3),
    ("AF_NETLINK", "SOCK_RAW", 0),
    ("AF_NETLINK", "SOCK_RAW", 9),
    ("AF_INET", "SOCK_RAW", 1),
    ("AF_INET6", "SOCK_RAW", 58),
    ("AF_VSOCK", "SOCK_STREAM", 0),
    ("AF_BLUETOOTH", "SOCK_RAW", 1),
    ("AF_CAN", "SOCK_RAW", 1),
    ("AF_TIPC", "SOCK_RDM", 0),
    ("AF_ALG", "SOCK_SEQPACKET", 0),
    ("AF_QIPCRTR", "SOCK_DGRAM", 0),
]
for family, kind, protocol in ASKED:
    try:
        socket.socket(getattr(socket, family), getattr(socket, kind), protocol).close()
    except (OSError, AttributeError) as error:
        print(family, error)
    else:
        proved(family)
return "tried"
