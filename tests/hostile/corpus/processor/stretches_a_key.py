# holds: in_time
# ends: crashed
import hashlib

return hashlib.pbkdf2_hmac("sha512", b"password", b"salt", 2_000_000_000).hex()
