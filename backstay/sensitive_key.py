"""Know what one key of a mapping says of its value, and of the values beside it."""

from typing import NamedTuple

from backstay.cells import TITLE_FIELDS

NAMING = frozenset((
    "name", "key", "header", "field", "parameter", "param", "variable", "label", "title", "property", "question",
    "attribute", "setting", "option", "var", "env", "k", "n", "id", "term", "type", "kind", "path", "column",
))  # fmt: skip
LOOSELY_NAMING = frozenset(("type", "kind", "path", "title", "question", "id"))
VALUING = frozenset((
    "value", "val", "values", "content", "contents", "data", "default", "answer", "text", "current", "v", "string",
    "plaintext", "literal", "defaultvalue", "after", "before", "raw", "result", "secretstring",
))  # fmt: skip
DESCRIBING = frozenset((
    "name", "path", "file", "filename", "type", "kind", "user", "username", "login", "email", "host", "hostname",
    "port", "url", "uri", "endpoint", "region", "zone", "scope", "scopes", "description", "label", "labels", "title",
    "enabled", "required", "optional", "format", "in", "provider", "version", "status", "state", "method", "algorithm",
    "namespace", "mode", "placeholder", "items", "minlength", "maxlength", "pattern", "created", "updated", "owner",
    "created_at", "updated_at", "expires_at", "expires_in", "issuer", "audience", "database", "schema", "environment",
    "domain", "tags", "audiences", "expirationseconds", "defaultmode", "readonly", "mountpath", "engine", "protocol",
))  # fmt: skip
"""What stands under these names beneath a sensitive one only describes the secret."""
SEALED = ("encrypteddata", "ciphertext")


class SensitiveKey(NamedTuple):
    """What is known of one key of a mapping: its shown form, what it names, and what part it plays beside others."""

    shown: str
    kind: str | None
    certain: bool
    about: bool
    plain: str
    last: str


def tells_nothing(keys: list[SensitiveKey]) -> bool:
    """Say whether no key of a mapping is sensitive, and none tells what another one holds."""
    return not any(
        key.kind
        or key.about
        or key.last in VALUING
        or key.plain in TITLE_FIELDS
        or key.plain in SEALED
        or key.plain == "kty"
        for key in keys
    ) and len({key.shown for key in keys}) == len(keys)
