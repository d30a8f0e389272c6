"""Know the forms in which a secret may stand in a text."""

import base64
import json
from urllib.parse import quote, quote_plus

SHORTEST = 8
"""What is shorter would be found in ordinary words."""


def spellings_of(secret: str) -> set[str]:
    """Return the spellings of a secret in plain text, URLs, JSON and base64; none for one of less than 8 bytes."""
    data = secret.encode("utf-8", "surrogatepass")
    if len(data) < SHORTEST:
        return set()
    coded = base64.b64encode(data).decode("ascii").rstrip("=")
    quoted = {
        quote(data, safe=""),
        quote_plus(data),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    }
    return {secret, *quoted, coded, coded.replace("+", "-").replace("/", "_")}
