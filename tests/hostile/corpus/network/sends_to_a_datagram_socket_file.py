# holds: no_connection
# ends: finished
import socket

try:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"hello from inside", DATAGRAM_PATH)
except OSError as error:
    print(error)
return "tried"
