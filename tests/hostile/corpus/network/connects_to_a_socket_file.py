# holds: no_connection
# ends: finished
import socket

try:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(STREAM_PATH)
        connection.sendall(b"hello from inside")
except OSError as error:
    print(error)
return "tried"
