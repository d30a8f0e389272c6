# holds: no_breach
# ends: finished
import socket

try:
    left, right = socket.socketpair()
    left.sendall(b"hello")
    if right.recv(5) == b"hello":
        proved("socket pair")
except OSError as error:
    print(error)
return "tried"
