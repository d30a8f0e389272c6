# holds: worker_healthy, nothing_left
# ends: any
import marshal
import types

for stream in (b"\xe3" + b"\xff" * 200, b"(\xff\xff\xff\x7f", b"[" * 5000, b"\xfb" + bytes(50)):
    try:
        marshal.loads(stream)
    except BaseException as error:
        print(type(error).__name__)
rotten = (lambda: None).__code__.replace(co_code=bytes([100, 255, 83, 0] * 50), co_stacksize=0, co_consts=())
return types.FunctionType(rotten, {})()
