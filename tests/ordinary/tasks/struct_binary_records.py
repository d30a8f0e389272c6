# result: {"size": 22, "hex": "0700000073656e736f7200002c010000000000803540", "fields": [7, "sensor", 300, 21.5], "changed": 255, "all": [1, 2], "array": ["h", 2, [1, -2, 300, 4], "0100feff2c010400"]}
import struct
from array import array

record = struct.Struct("<I8sHd")
packed = record.pack(7, b"sensor", 300, 21.5)
number, name, flags, value = record.unpack(packed)
samples = array("h", [1, -2, 300])
samples.extend([4])
view = memoryview(bytearray(packed))
view[0] = 255
return {
    "size": record.size,
    "hex": packed.hex(),
    "fields": [number, name.rstrip(b"\0").decode(), flags, value],
    "changed": struct.unpack_from("<I", view)[0],
    "all": [t[0] for t in struct.iter_unpack(">H", b"\x00\x01\x00\x02")],
    "array": [samples.typecode, samples.itemsize, samples.tolist(), samples.tobytes().hex()],
}
