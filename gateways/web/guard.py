"""Keep out what no browser of ours sends, before anything of it is read, and bound what is let in."""

import asyncio
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateways.web.identity import LOOPBACK_NAMES

MOST_BYTES = 2 * 1024 * 1024
"""How much one request may carry."""
BODY_S = 20.0
"""How long the body of a request may take to arrive."""
API = "/api"
"""Below this, programs find what people find on the page."""
HEALTH = frozenset({"/healthz", "/readyz"})
"""What answers under every name, since those who ask know an address only; it says nothing of any run."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
BEHIND_A_SIGN_IN = POLICY.replace("form-action 'self'", "form-action 'self' https:")
"""Where a proxy has people sign in elsewhere: it leads there whoever sends a form after their sign-in has ended, which
Chromium forbids without this, and says nothing.
"""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: browsers would then leave the origin out of our own forms, too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


KINDS = {
    400: "BadRequest",
    401: "NotSignedIn",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "TooSlow",
    409: "Conflict",
    413: "TooLarge",
    415: "UnsupportedMediaType",
    429: "TooMany",
}
"""What JSON calls an error that is none of the engine's."""


class TooMuch(Exception):
    """A body is too long, or too slow."""

    def __init__(self, status: int, why: str) -> None:
        """`status` is the one of the answer."""
        super().__init__(why)
        self.status = status


class Guard:
    """Refuse foreign names and foreign origins, bound bodies, and put our headers on every answer."""

    def __init__(
        self, app: ASGIApp, *, url: str | None, signed: Collection[str] = (), signs_in_elsewhere: bool = False
    ) -> None:
        """`url` is the public address; the paths of `signed` are for programs, and check a signature themselves.

        `signs_in_elsewhere`: a proxy may lead whoever sends a form to a sign-in at another site.
        """
        self._app = app
        self._headers = HEADERS | ({"Content-Security-Policy": BEHIND_A_SIGN_IN} if signs_in_elsewhere else {})
        self._origin = "" if url is None else "{0.scheme}://{0.netloc}".format(urlsplit(url)).lower()
        self._names = LOOPBACK_NAMES if url is None else LOOPBACK_NAMES | {(urlsplit(url).hostname or "").lower()}
        self._signed = frozenset(path for path in signed if not path.endswith("/"))
        self._signed_below = tuple(path for path in signed if path.endswith("/"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # An id may hold a slash, so paths are parted before they are decoded.
        path = scope.get("raw_path", b"").partition(b"?")[0].decode("ascii", "replace")
        scope = {**scope, "path": path, "root_path": ""}

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                del headers["server"]
            await send(message)

        app = self._refusal(scope) or self._app
        await app(scope, _bounded(receive), answer)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if (refused := self._refused(scope, headers)) is None:
            return None
        status, why = refused
        more = {"Allow": "GET, HEAD, POST"} if status == 405 else None
        if is_for_programs(scope):
            return JSONResponse(error_body(KINDS[status], why), status, more)
        return PlainTextResponse(why, status, more)

    def _refused(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Return with which status a request is refused, and why."""
        hosts = headers.getlist("host")
        if scope["path"] in HEALTH:
            return None
        if len(hosts) != 1 or _name_of(hosts[0]) not in self._names:
            return 400, "this page does not answer under that name; set BACKSTAY_URL to its address"
        if scope["method"] in {"GET", "HEAD"} or self._is_signed(scope["path"]):
            return None
        if scope["method"] != "POST":
            return 405, "only GET and POST"
        if not self._is_ours(headers, hosts[0]):
            return 403, "this was sent from another page"
        if (length := headers.get("content-length", "0")).isdecimal() and int(length) > MOST_BYTES:
            return 413, "the request is too long"
        return None

    def _is_signed(self, path: str) -> bool:
        """Return whether a part of the page looks for a signature instead of a person."""
        return path in self._signed or path.startswith(self._signed_below)

    def _is_ours(self, headers: Headers, host: str) -> bool:
        """Return whether a request comes from our own page, or from a program that is not a browser."""
        origins = headers.getlist("origin")
        if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"} or len(origins) > 1:
            return False
        if not origins:
            return True
        origin = origins[0].lower()
        return origin == self._origin or (origin != "null" and urlsplit(origin).netloc == host.lower())


def error_body(kind: str, message: str) -> dict[str, Any]:
    """Return what a program is told instead of what it asked for."""
    return {"error": {"type": kind, "message": message}}


def is_below_api(scope: Scope) -> bool:
    """Return whether an address is one of the API, which takes and gives JSON only."""
    return str(scope["path"]).startswith(f"{API}/")


def is_for_programs(scope: Scope) -> bool:
    """Return whether a program asks: below the API, or with a header that wants JSON."""
    accepted = Headers(scope=scope).get("accept", "")
    return is_below_api(scope) or ("application/json" in accepted and "text/html" not in accepted)


def _name_of(host: str) -> str:
    """Return the name in a header Host; empty for what is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower() if "@" not in host and "/" not in host else ""
    except ValueError:
        return ""


def _bounded(receive: Receive) -> Receive:
    """Return a receiver of which a body can take neither more than its share of memory, nor of time."""
    deadline = asyncio.get_running_loop().time() + BODY_S
    seen, complete = 0, False

    async def bounded() -> Message:
        nonlocal seen, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise TooMuch(408, f"the request took longer than {BODY_S:g} s to arrive; send it again") from None
        seen += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if seen > MOST_BYTES:
            raise TooMuch(413, f"the request is longer than {MOST_BYTES:,} bytes; send less")
        return message

    return bounded
