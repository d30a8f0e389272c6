# holds: memory_bounded, worker_healthy
# ends: any
import pickle

for stream in (
    b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
    b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffabc.",
    b"r\xff\xff\xff\xffN.",
    b"Nr\xff\xff\xff\x7f.",
    b"\x80\x04" + b"(" * 1_000_000 + b"t" * 1_000_000 + b".",
):
    try:
        pickle.loads(stream)
    except BaseException as error:
        print(type(error).__name__)
return "tried"
