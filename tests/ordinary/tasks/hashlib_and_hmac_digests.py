# result: {"md5": "9e107d9d372bb6826bd81d3542a419d6", "sha1": "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12", "same": true, "blake": "4c4531b978d589f8", "sha3": "a7ffc6f8bf1ed766", "signature": "a212e23f04df13742c03e969b02b35d3a81da6136e471f080d723e1eaab0b0d8", "verified": true}
import hashlib
import hmac


async def main():
    message = b"The quick brown fox jumps over the lazy dog"
    chunked = hashlib.sha256()
    for start in range(0, len(message), 7):
        chunked.update(message[start : start + 7])
    key = hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1000)
    signature = hmac.new(key, message, "sha256").hexdigest()
    return {
        "md5": hashlib.md5(message).hexdigest(),
        "sha1": hashlib.sha1(message).hexdigest(),
        "same": chunked.hexdigest() == hashlib.sha256(message).hexdigest(),
        "blake": hashlib.blake2b(message, digest_size=8).hexdigest(),
        "sha3": hashlib.sha3_256(b"").hexdigest()[:16],
        "signature": signature,
        "verified": hmac.compare_digest(signature, hmac.new(key, message, hashlib.sha256).hexdigest()),
    }
