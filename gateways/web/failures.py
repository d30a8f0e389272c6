"""Which status an error has, and what people are told of it."""

from starlette.exceptions import HTTPException

from backstay import errors
from backstay.approvals.admission import DecisionInvalid
from backstay.errors import BackstayError
from backstay.shown import message_line
from gateways.links import Stranger
from gateways.web.guard import KINDS, TooMuch

_STATUS: tuple[tuple[type[BackstayError], int], ...] = (
    (errors.NotVerified, 403),
    (DecisionInvalid, 422),
    (errors.QuorumPending, 409),
    (errors.DecisionRefused, 409),
    (errors.SignInRefused, 409),
    (errors.RunOpen, 409),
    (errors.RunNotFound, 404),
    (errors.Pruned, 410),
    (errors.TaskInvalid, 422),
    (errors.ArgumentsInvalid, 422),
    (errors.SettingsInvalid, 503),
    (errors.Transient, 503),
)
_WORDS = {
    404: "there is nothing here that you may see",
    409: "this has changed meanwhile; look at it again",
    413: "this is too long",
    415: "send a form, or JSON with a bearer token",
}


def kind_of(error: Exception, status: int) -> str:
    """Return what programs switch on: the engine's own error, or else what the status means."""
    known = (kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("backstay."))
    return next(known, KINDS.get(status, "InternalError"))


def headers_of(error: Exception) -> dict[str, str]:
    """Return what the headers of an answer say of an error, such as the methods that an address takes."""
    return dict(error.headers or {}) if isinstance(error, HTTPException) else {}


def status_of(error: Exception) -> tuple[int, str]:
    """Return the status and the line for people; a fault of our own says nothing of what is inside."""
    match error:
        case Stranger():
            return 401, str(error)
        case TooMuch():
            return error.status, str(error)
        case HTTPException(status_code=405):
            taken = {each.strip() for each in (error.headers or {}).get("Allow", "").split(",")} - {"", "HEAD"}
            instead = f", or send {' or '.join(sorted(taken))}" if taken else ""
            return 405, f"nothing was done; open the page again{instead}"
        case HTTPException():
            said = error.detail if error.status_code in {400, 401, 403, 415} else _WORDS.get(error.status_code, "")
            return error.status_code, message_line(said or error.detail)
        case BackstayError():
            status = next((status for kind, status in _STATUS if isinstance(error, kind)), 400)
            return status, message_line(str(error), 2000)
        case _:
            return 500, "something is wrong with the page itself; its log says what"
