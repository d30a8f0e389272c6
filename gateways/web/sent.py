"""Read what people send, and only what their own page or program has sent."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from backstay.approvals.admission import DecisionInvalid
from backstay.authority import principal
from backstay.bounds import DEEPEST
from backstay.canonical import KeyTwice, canonical, deeper_than, read_json
from backstay.shown import one_line
from gateways.links import Seals
from gateways.web.guard import is_below_api
from gateways.web.identity import Visitor, bearer_of

_MOST_FIELDS = 5000
_MOST_DIGITS = 400
_FOREIGN = "this form is not from a page of yours, or it is older than 12 hours; open the page again"


class Submission(NamedTuple):
    """Hold what was sent: the fields of a form, or the JSON object of a program."""

    fields: Mapping[str, tuple[str, ...]]
    json: dict[str, Any] | None = None
    """None for a form."""

    def get(self, name: str, default: str = "") -> str:
        """Return the value of a field of a form, with the line breaks that people see.

        Raises DecisionInvalid for two values of one field, of which only one would count.
        """
        values = self.fields.get(name, ())
        if len(set(values)) > 1:
            raise DecisionInvalid(f"{one_line(name, 80)}: sent twice, with different values; send it once")
        return next(iter(values), default).replace("\r\n", "\n")

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of a field of a form."""
        return self.fields.get(name, ())


async def read_sent(request: Request, visitor: Visitor, seals: Seals) -> Submission:
    """Return what a request carries; raises HTTPException for what a foreign page could have had a browser send."""
    content, _, parameters = request.headers.get("content-type", "").partition(";")
    match content.strip().lower():
        case "application/x-www-form-urlencoded" if not is_below_api(request.scope):
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
            return Submission({}, json_object(await request.body()))
        case _:
            raise HTTPException(415)


def _require_own(token: str, visitor: Visitor, seals: Seals) -> None:
    said = seals.opened("form", token)
    if said is None or said.get("by") != visitor.by:
        raise HTTPException(403, _FOREIGN)


def _form(body: bytes) -> Submission:
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict", separator="&"
        )
    except (ValueError, UnicodeError):
        raise HTTPException(400, "the form cannot be read") from None
    fields: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        fields[name] = (*fields.get(name, ()), value)
    return Submission(fields)


def text_in(said: Mapping[str, Any], name: str, default: str = "") -> str:
    """Return a string that a program sent, or the default for none; raises DecisionInvalid for anything else."""
    text = default if said.get(name) is None else said[name]
    if not isinstance(text, str):
        raise DecisionInvalid(f"{name}: must be a string, not {one_line(json.dumps(text), 40)}")
    return text


def _is_own(visitor: Visitor, name: Any) -> bool:
    """Return whether a program named whoever it acts for."""
    return isinstance(name, str) and principal(name) == visitor.by


def without_names(visitor: Visitor, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a program sent without who sends it; raises DecisionInvalid for another's name, or a proof."""
    said = dict(body)
    for name in ("by", "proof"):
        given = said.pop(name, None)
        if given is not None and not (name == "by" and _is_own(visitor, given)):
            raise DecisionInvalid(f"{name}: is made here, from who you are; leave it out")
    return said


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a program sent.

    Raises HTTPException for what is none, and DecisionInvalid, naming the field, for one that could not be sent on.
    """
    try:
        data = read_json(body.decode("utf-8"), _whole)
    except KeyTwice as error:
        raise DecisionInvalid(one_line(str(error), 200)) from None
    except (ValueError, UnicodeError, RecursionError):
        raise HTTPException(400, "the body is not JSON; send an object in UTF-8") from None
    if not isinstance(data, dict):
        raise HTTPException(400, "the body must be a JSON object")
    for name, value in data.items():
        if fault := _fault(name, value):
            raise DecisionInvalid(f"{one_line(name, 80)}: {fault}")
    return data


def _whole(digits: str) -> float:
    """Return a whole number, or none for one of more digits than anybody needs."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float("nan")


def _fault(name: str, value: Any) -> str:
    """Return why a field could not be sent on, or nothing."""
    if deeper_than(value, DEEPEST):
        return f"nested deeper than {DEEPEST} levels; flatten it"
    try:
        canonical([name, value]).encode()
    except UnicodeEncodeError:
        return "holds half a character; give whole ones"
    except ValueError:
        return "holds a number that is none, or endless, or too long; give it as a string"
    return ""


def _is_utf8(parameters: str) -> bool:
    return parameters.strip().lower() in {"", "charset=utf-8", 'charset="utf-8"'}
