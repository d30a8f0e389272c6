"""Take secrets out of what a server says of its tools, and leave everything else as it was said."""

from typing import Any

from backstay.redaction import Redactor, mask

_MOST = 50


def masked(value: Any, redactor: Redactor) -> Any:
    """Return the value with every secret masked that is known or has a form of its own.

    Names tell nothing here: a schema speaks of a `token` where it says that there is one, and must stay a schema.
    """
    match value:
        case str():
            return _text(value, redactor)
        case dict():
            return {_text(str(key), redactor): masked(item, redactor) for key, item in value.items()}
        case list():
            return [masked(item, redactor) for item in value]
        case bool() | None:
            return value
        case _:
            # A secret may be all digits.
            text = repr(value)
            shown = _text(text, redactor)
            return value if shown == text else shown


def _text(text: str, redactor: Redactor) -> str:
    shown: list[str] = []
    while (found := redactor.secret_in(text)) is not None:
        start, end, kind = found
        shown += [text[:start], mask(kind, None)]
        # Each one costs a look at all that follows; what holds so many is no description.
        text = text[end:] if len(shown) < 2 * _MOST else ""
    return "".join([*shown, text]) if shown else text
