# holds: no_connection
# ends: finished
import errno
import select
import socket

try:
    connection = socket.socket()
    connection.setblocking(False)
    code = connection.connect_ex(("127.0.0.1", TCP_PORT))
    print(errno.errorcode.get(code, code))
    select.select([], [connection], [], 0.5)
    connection.send(b"hello from inside")
except OSError as error:
    print(error)
return "tried"
