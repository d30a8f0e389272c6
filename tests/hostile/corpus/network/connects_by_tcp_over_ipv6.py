# holds: no_connection
# ends: finished
import socket

for host in ("::1", "::ffff:127.0.0.1", "fe80::1%lo"):
    try:
        with socket.create_connection((host, TCP6_PORT), timeout=1) as connection:
            connection.sendall(b"hello from inside")
    except OSError as error:
        print(host, error)
return "tried"
