# holds: no_listener
# ends: finished
import socket
import time

try:
    with socket.create_server(("127.0.0.1", SPARE_PORT)) as server:
        server.settimeout(1)
        server.accept()
except OSError as error:
    print(error)
return "tried"
