# result: {"b64": "AAUKDxQZHiMoLTI3PEFGS1BVWl9kaW5zeH2Ch4yRlpugpaqvtLm+w8jN0tfc4ebr8PX6/w==", "url_back": true, "b32": "NBSWY3DP", "b85": "Xk~0{Zv", "hex": "00ff", "crc": 907060870, "problem": "Error"}
import base64
import binascii

data = bytes(range(0, 256, 5))
url = base64.urlsafe_b64encode(data).decode()
try:
    base64.b64decode("abc", validate=True)
    problem = None
except binascii.Error as e:
    problem = type(e).__name__
return {
    "b64": base64.b64encode(data).decode(),
    "url_back": base64.urlsafe_b64decode(url) == data,
    "b32": base64.b32encode(b"hello").decode(),
    "b85": base64.b85encode(b"hello").decode(),
    "hex": binascii.hexlify(b"\x00\xff").decode(),
    "crc": binascii.crc32(b"hello"),
    "problem": problem,
}
