"""Spellings in which a tool may say a secret back: one function per line, from a secret to any JSON.

To add one, write a line; every test that goes through the table uses it at once.
"""

import base64
from urllib.parse import quote


def token_of(number):
    """Return a token that looks like many others, and like no other one."""
    seed = (number + 1) * 2654435761 % 2**32
    return f"rt{number}-{seed:08x}Qz-{(seed * 48271) % 2**31:08X}xK"


def shifted(secret, before):
    """Encode a secret that begins so many bytes into a longer text."""
    return base64.b64encode(b"x" * before + secret.encode() + b"end").decode()


SPELLINGS = {
    "as it is": lambda secret: secret,
    "in a sentence": lambda secret: f"you gave me {secret}, thank you",
    "upper case": lambda secret: secret.upper(),
    "other case": lambda secret: secret.swapcase(),
    "backwards": lambda secret: secret[::-1],
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64, one byte on": lambda secret: shifted(secret, 1),
    "base64, two bytes on": lambda secret: shifted(secret, 2),
    "base64 for addresses": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    "hexadecimal": lambda secret: secret.encode().hex(),
    "hexadecimal, upper case": lambda secret: secret.encode().hex().upper(),
    "base32": lambda secret: base64.b32encode(secret.encode()).decode(),
    "percent": lambda secret: quote(secret, safe="").replace("-", "%2D"),
    "percent for every letter": lambda secret: "".join(f"%{byte:02X}" for byte in secret.encode()),
    "split by spaces": " ".join,
    "split by punctuation": "-".join,
    "split by invisible signs": "\u200b".join,
    "one letter in each field": lambda secret: {"letters": list(secret)},
    # These five were chosen by somebody who had not read how secrets are found.
    "quoted-printable for every letter": lambda secret: "".join(f"={byte:02X}" for byte in secret.encode()),
    "entities of HTML": lambda secret: "".join(f"&#{ord(letter)};" for letter in secret),
    "numbers of the letters": lambda secret: ", ".join(str(ord(letter)) for letter in secret),
    "base64 of base64": lambda secret: base64.b64encode(base64.b64encode(secret.encode())).decode(),
    "full-width letters": lambda secret: "".join(chr(ord(letter) + 0xFEE0) for letter in secret),
}
