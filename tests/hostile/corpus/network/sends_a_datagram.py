# holds: no_connection
# ends: finished
import socket

for family, host, port in ((socket.AF_INET, "127.0.0.1", UDP_PORT), (socket.AF_INET6, "::ffff:127.0.0.1", UDP_PORT)):
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"hello from inside", (host, port))
    except OSError as error:
        print(error)
return "tried"
