# holds: memory_bounded, in_time
# ends: any
import zlib

packer = zlib.compressobj(9)
packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(150)) + packer.flush()
print(len(packed))
kept = []
while True:
    kept.append(zlib.decompress(packed))
