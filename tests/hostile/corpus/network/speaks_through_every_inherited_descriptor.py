# holds: no_connection
# ends: any
import socket

for number in range(3, 1024):
    try:
        with socket.socket(fileno=number) as inherited:
            inherited.connect(("127.0.0.1", TCP_PORT))
            inherited.sendall(b"hello from inside")
    except OSError:
        pass
return "tried"
