# holds: no_connection
# ends: finished
import socket

try:
    with socket.create_connection(("127.0.0.1", TCP_PORT), timeout=1) as connection:
        connection.sendall(b"hello from inside")
except OSError as error:
    print(error)
return "tried"
