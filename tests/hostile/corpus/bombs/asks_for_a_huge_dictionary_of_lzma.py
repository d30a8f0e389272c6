# holds: memory_bounded, worker_healthy
# ends: any
import bz2
import lzma

try:
    lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 31}])
    lzma.compress(bytes(100), preset=9 | lzma.PRESET_EXTREME, format=lzma.FORMAT_ALONE)
except (MemoryError, lzma.LZMAError) as error:
    print(type(error).__name__)
packed = bz2.compress(bytes(50 << 20))
kept = []
while True:
    kept.append(bz2.decompress(packed))
