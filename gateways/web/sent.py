"""Read what people send, and only what their own page or program has sent."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from gateways.web.identity import Visitor, bearer_of
from gateways.web.tokens import Seals

_MOST_FIELDS = 5000
_FOREIGN = "this form is not from a page of yours, or it is older than 12 hours; open the page again"


class Sent(NamedTuple):
    """Hold what was sent: the fields of a form, or the JSON object of a program."""

    fields: Mapping[str, tuple[str, ...]]
    json: dict[str, Any] | None = None
    """None for a form."""

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a field of a form, with the line breaks that people see."""
        return next(iter(self.fields.get(name, ())), default).replace("\r\n", "\n")

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of a field of a form."""
        return self.fields.get(name, ())


async def read_sent(request: Request, visitor: Visitor, seals: Seals) -> Sent:
    """Return what a request carries; raises HTTPException for what a foreign page could have had a browser send."""
    content, _, parameters = request.headers.get("content-type", "").partition(";")
    match content.strip().lower():
        case "application/x-www-form-urlencoded":
            sent = _form(await request.body())
            _require_own(sent.get("csrf"), visitor, seals)
            return sent
        case "application/json" if _is_utf8(parameters):
            # No page of others can send this type without being allowed to first, and nobody is.
            token = bearer_of(request)
            if not token:
                raise HTTPException(401, "JSON needs the header Authorization with a bearer token")
            if token != visitor.bearer:
                _require_own(token, visitor, seals)
            return Sent({}, _object(await request.body()))
        case _:
            raise HTTPException(415)


def _require_own(token: str, visitor: Visitor, seals: Seals) -> None:
    said = seals.opened("form", token)
    if said is None or said.get("by") != visitor.by:
        raise HTTPException(403, _FOREIGN)


def _form(body: bytes) -> Sent:
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict", separator="&"
        )
    except (ValueError, UnicodeError):
        raise HTTPException(400, "the form cannot be read") from None
    fields: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        fields[name] = (*fields.get(name, ()), value)
    return Sent(fields)


def _object(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body.decode("utf-8"))
    except (ValueError, UnicodeError, RecursionError):
        raise HTTPException(400, "the body is no JSON") from None
    if not isinstance(data, dict):
        raise HTTPException(400, "the body must be a JSON object")
    return data


def _is_utf8(parameters: str) -> bool:
    return parameters.strip().lower() in {"", "charset=utf-8", 'charset="utf-8"'}
