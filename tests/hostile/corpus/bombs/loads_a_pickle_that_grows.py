# holds: memory_bounded, in_time
# ends: any
import pickle

# Each step holds the one before it twice; nothing is shared once it is written out.
stream = b"\x80\x04]\x94" + b"".join(b"(hhe" for _ in range(3)) + b"."
grown = "lol"
for _ in range(40):
    grown = [grown, grown]
try:
    pickle.loads(stream)
except Exception as error:
    print(type(error).__name__)
return grown
