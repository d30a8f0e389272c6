"""Values whose form is more than drawn characters: keys in armour, signed tokens, identifiers, ordinary content."""

import base64
import json
import string
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from urllib.parse import quote
from uuid import UUID

PEM_LINE = 64
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
START = datetime(2024, 1, 1, tzinfo=UTC)
WORDS = ("harbor", "lantern", "meadow", "ribbon", "timber", "walnut", "anchor", "candle", "engine", "garden", "island")


def url_safe(content: bytes) -> str:
    """Write bytes as base64url without padding."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def armour_lines(generator: Random, description: str) -> tuple[str, str, list[str]]:
    """Draw the lines of an armoured block from `label,first bytes,length,heading`; the heading may be missing."""
    label, first_bytes, length, *heading = description.split(",")
    start = bytes.fromhex(first_bytes)
    body = base64.b64encode(start + generator.randbytes(int(length) - len(start))).decode()
    lines = [body[at : at + PEM_LINE] for at in range(0, len(body), PEM_LINE)]
    return label, f"{heading[0]}\n\n" if heading else "", lines


def armour(generator: Random, description: str) -> str:
    """Draw an armoured block that is public."""
    label, heading, lines = armour_lines(generator, description)
    return "\n".join((f"-----BEGIN {label}-----", heading + lines[0], *lines[1:], f"-----END {label}-----"))


def pem(generator: Random, description: str) -> str:
    """Draw an armoured key and mark one line of its body, the part that survives every escaping, as the secret."""
    label, heading, lines = armour_lines(generator, description)
    lines[len(lines) // 2] = f"<{lines[len(lines) // 2]}>"
    return "\n".join((f"-----BEGIN {label}-----", heading + lines[0], *lines[1:], f"-----END {label}-----"))


def jwt(generator: Random, description: str) -> str:
    """Draw a signed token from `algorithm,length of the signature`."""
    algorithm, length = description.split(",")
    issued = generator.randrange(1_700_000_000, 1_800_000_000)
    claims = {
        "sub": str(generator.randrange(10**9)),
        "aud": generator.choice(WORDS),
        "iat": issued,
        "exp": issued + 3600,
    }
    parts = (json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": algorithm, "typ": "JWT"}, claims))
    return ".".join((*map(url_safe, parts), url_safe(generator.randbytes(int(length)))))


def service_account(generator: Random) -> str:
    """Draw the JSON document of a cloud service account with its private key."""
    project = f"{generator.choice(WORDS)}-{generator.randrange(10**6)}"
    key = pem(generator, "PRIVATE KEY,308204be020100300d06092a864886f70d0101010500048204a8,1218")
    document = {
        "type": "service_account",
        "project_id": project,
        "private_key_id": generator.randbytes(20).hex(),
        "private_key": f"{key}\n",
        "client_email": f"{generator.choice(WORDS)}@{project}.iam.gserviceaccount.com",
        "client_id": str(generator.randrange(10**20, 10**21)),
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    return json.dumps(document, indent=2)


def shared_access_signature(generator: Random) -> str:
    """Draw a signature as it stands in an address, percent-encoded."""
    return quote(base64.b64encode(generator.randbytes(32)).decode(), safe="")


def discord_identifier(generator: Random) -> str:
    """Draw the first part of a bot token: the base64 of its user's number."""
    return url_safe(str(generator.randrange(10**17, 10**18)).encode())


def basic_credentials(generator: Random) -> str:
    """Draw user and password in the encoding of basic authentication."""
    drawn = "".join(generator.choices(string.ascii_letters + string.digits, k=16))
    return base64.b64encode(f"{generator.choice(WORDS)}:{drawn}".encode()).decode()


def chosen_password(generator: Random) -> str:
    """Draw a password as people choose it, which an address can carry without encoding."""
    first, second = generator.sample(WORDS, 2)
    return f"{first.capitalize()}{second}{generator.randrange(100, 10_000)}{generator.choice('!_-.')}"


def password(generator: Random, length: str) -> str:
    """Draw a password of a manager with at least one digit and one symbol."""
    drawn = generator.choices(string.ascii_letters + string.digits + "!@#%^*-_+.", k=int(length) - 3)
    return (
        f"{generator.choice(string.ascii_letters)}{''.join(drawn)}{generator.choice('!^*+')}{generator.randrange(10)}"
    )


def uuid(generator: Random) -> str:
    """Draw a random UUID."""
    return str(UUID(int=generator.getrandbits(128), version=4))


def ulid(generator: Random) -> str:
    """Draw an identifier that begins with its time."""
    return "01H" + "".join(generator.choices(CROCKFORD, k=23))


def moment(generator: Random) -> str:
    """Draw a point in time."""
    return (START + timedelta(seconds=generator.randrange(60_000_000))).isoformat()


def day(generator: Random) -> str:
    """Draw a date."""
    return moment(generator)[:10]


def version(generator: Random) -> str:
    """Draw the version of a package."""
    return f"{generator.randrange(12)}.{generator.randrange(40)}.{generator.randrange(30)}"


def png(generator: Random) -> str:
    """Draw some kilobytes that begin like an image, as base64."""
    header = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
    return base64.b64encode(header + generator.randbytes(generator.randrange(1500, 4000))).decode()


def base64_prose(generator: Random) -> str:
    """Draw a letter of plain words, as base64."""
    words = " ".join(generator.choices(WORDS, k=60))
    return base64.b64encode(f"Dear reader,\n\n{words}.\n".encode()).decode()


def svg_path(generator: Random) -> str:
    """Draw the outline of an icon."""
    points = (
        f"{generator.choice('LCHVl')}{generator.randrange(240) / 10} {generator.randrange(240) / 10}" for _ in range(40)
    )
    return "M0 0" + "".join(points) + "Z"


def minified_script(generator: Random) -> str:
    """Draw a script without blanks and with short names."""
    names = [generator.choice(string.ascii_lowercase) + str(generator.randrange(99)) for _ in range(40)]
    functions = (
        f"function {name}(t,e){{return t.{generator.choice(WORDS)}(e)?{generator.randrange(999)}:void 0}}"
        for name in names
    )
    return "!function(){" + "".join(functions) + "}();"


def iban(generator: Random) -> str:
    """Draw a number of the length of an account; its check digits are none."""
    return "DE00" + "".join(generator.choices(string.digits, k=18))


def isbn(generator: Random) -> str:
    """Draw the number of a book."""
    drawn = "".join(generator.choices(string.digits, k=9))
    return f"978-{drawn[0]}-{drawn[1:5]}-{drawn[5:9]}-{generator.randrange(10)}"


def phone(generator: Random) -> str:
    """Draw a number of the range that is reserved for fiction."""
    return f"+1 {generator.randrange(201, 990)} 555 01{generator.randrange(100):02}"


MADE: dict[str, Callable[[Random], str]] = {
    function.__name__: function
    for function in (
        *(service_account, shared_access_signature, discord_identifier, basic_credentials, chosen_password),
        *(uuid, ulid, moment, day, version, png, base64_prose, svg_path, minified_script, iban, isbn, phone),
    )
}
