# holds: no_connection, in_time
# ends: any
import socket

socket.setdefaulttimeout(1)
for name in ("localhost", "example.com", "127.0.0.1"):
    try:
        found = socket.getaddrinfo(name, TCP_PORT)
        socket.create_connection(found[0][4][:2], timeout=0.5).sendall(b"hello from inside")
    except OSError as error:
        print(name, error)
return "tried"
