"""Write a secret in the spellings that could carry it past somebody who looks for it as it is.

What `backstay.redaction.folding` undoes is not listed here: case, separators between letters, invisible characters,
escapes of addresses, code and markup, and letters in another style.
"""

import base64
import codecs
from collections.abc import Callable, Iterable, Iterator

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

Spelling = Callable[[str], Iterable[str]]
"""Gives the texts by which one spelling of a secret is recognised."""


def _base64(secret: str) -> Iterator[str]:
    for data in _encoded(secret):
        yield from _anywhere(data, base64.b64encode, bits=6, group=3)


def _base85(secret: str) -> Iterator[str]:
    data = _bytes(secret)
    yield base64.b85encode(data).decode()
    yield base64.a85encode(data).decode()


def _base58(secret: str) -> Iterator[str]:
    number, digits = int.from_bytes(_bytes(secret), "big"), ""
    while number:
        number, digit = divmod(number, len(_BASE58))
        digits = _BASE58[digit] + digits
    yield digits


def _codes(secret: str) -> Iterator[str]:
    """Yield the numbers of the letters, as people and programs list them."""
    data = _bytes(secret)
    yield "".join(map(str, data))
    yield "".join(f"{byte:03d}" for byte in data)
    yield "".join(f"{byte:o}" for byte in data)
    yield "".join(f"{byte:08b}" for byte in data)
    yield "".join(f"0x{byte:02x}" for byte in data)
    yield "".join(str(ord(sign)) for sign in secret)
    yield "".join(f"u{ord(sign):04x}" for sign in secret)
    yield str(int.from_bytes(data, "big"))


def _twice(secret: str) -> Iterator[str]:
    data = _bytes(secret)
    coded = base64.b64encode(data)
    yield coded.hex()
    yield coded.decode()[::-1]
    yield data.hex()[::-1]
    for inner in (coded, data.hex().encode(), data.hex().upper().encode()):
        yield from _anywhere(inner, base64.b64encode, bits=6, group=3)


SPELLINGS: dict[str, Spelling] = {
    "plain": lambda secret: [secret],
    "backwards": lambda secret: [secret[::-1]],
    "rot13": lambda secret: [codecs.encode(secret, "rot13")],
    "each letter twice": lambda secret: ["".join(2 * sign for sign in secret)],
    "hexadecimal": lambda secret: [data.hex() for data in _encoded(secret)],
    "base64": _base64,
    "base32": lambda secret: _anywhere(_bytes(secret), base64.b32encode, bits=5, group=5),
    "base85": _base85,
    "base58": _base58,
    "codes of the letters": _codes,
    "encoded twice": _twice,
}
LETTERS = ("plain", "backwards", "rot13")
"""The spellings that have the letters of the secret itself, one for one."""


def _bytes(secret: str) -> bytes:
    return secret.encode("utf-8", "surrogatepass")


def _encoded(secret: str) -> list[bytes]:
    """Return what may be encoded for a secret: itself, backwards, in another case, and in two bytes per letter."""
    forms = dict.fromkeys((secret, secret[::-1], secret.upper(), secret.lower()))
    return [*map(_bytes, forms), *(secret.encode(form, "surrogatepass") for form in ("utf-16-le", "utf-16-be"))]


def _anywhere(data: bytes, encode: Callable[[bytes], bytes], *, bits: int, group: int) -> Iterator[str]:
    """Yield what an encoding makes of data wherever in a longer text it begins.

    The characters at both ends that also depend on what is beside it are left out.
    """
    for before in range(group):
        coded = encode(bytes(before) + data).decode()
        yield coded[-(-before * 8 // bits) : (before + len(data)) * 8 // bits]
