"""A server that speaks the protocol of S3 for tests: moto's, behind a switch for faults.

It runs in a thread of the process of the tests and listens on a free port of this machine.
"""

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

import obstore
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from obstore.store import S3Store
from werkzeug.serving import WSGIRequestHandler, make_server

KEY, SECRET = "AKIAOFTHETESTS", "secret-key-of-the-tests"
ACCESS = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
_REFUSED = b"<?xml version='1.0'?><Error><Code>%s</Code><Message>of " + SECRET.encode() + b"</Message></Error>"
_FAULTS = {
    "503": ("503 Slow Down", b"SlowDown"),
    "403": ("403 Forbidden", b"SignatureDoesNotMatch"),
    "expired": ("400 Bad Request", b"ExpiredToken"),
}
_PATH_STYLE = ("403 Forbidden", b"SecondLevelDomainForbidden")
_LOCKED = ("400 Bad Request", b"InvalidRequest")
_OF_THE_PLATFORM = {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": "t", "Expiration": "2099-01-01T00:00:00Z"}
_SLOW_S = 1.0


class S3Server:
    """Serve buckets, without the request that removes several objects, and fail as `fault` says."""

    def __init__(self) -> None:
        self.fault = ""
        """`503`, `403`, `expired`, `slow`, `cut` (an answer that breaks off), `gone` (others remove first), `path
        style` (it is refused), `locked` (what comes without a checksum is refused), or nothing."""
        self.asked: list[tuple[str, str, str]] = []
        """Method, path and range of each request."""
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def bucket(self, name: str) -> str:
        """Make a bucket and return its name."""
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT"), timeout=60).close()
        return name

    def store(self, bucket: str) -> S3Store:
        """Return a client that sees all of a bucket."""
        access = {name.lower(): value for name, value in ACCESS.items()}
        return S3Store(bucket, config={"endpoint": self.endpoint, **access}, client_options={"allow_http": True})

    def objects(self, bucket: str) -> dict[str, bytes]:
        """Return all objects of a bucket by their keys."""
        store = self.store(bucket)
        keys = [each["path"] for chunk in obstore.list(store) for each in chunk]
        return {key: bytes(obstore.get(store, key).bytes()) for key in keys}

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Put an object in place of another one."""
        obstore.put(self.store(bucket), key, data)

    def _answer(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.asked.append((method, path, environ.get("HTTP_RANGE", "")))
        self.before(method, path)
        if path == "/credentials":
            self.asked.append(("GET", path, environ.get("HTTP_AUTHORIZATION", "")))
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(_OF_THE_PLATFORM).encode()]
        if (refused := self._refused(environ)) is not None:
            start(refused[0], [("Content-Type", "application/xml")])
            return [_REFUSED % refused[1]]
        match self.fault:
            case "gone" if method == "DELETE":
                list(self._app(environ, lambda *_: None))
                start("404 Not Found", [("Content-Type", "application/xml")])
                return [_REFUSED % b"NoSuchKey"]
            case "slow":
                time.sleep(_SLOW_S)
            case "cut":
                start("206 Partial Content", [("Content-Length", "100000"), ("Content-Range", "bytes 0-99999/100000")])
                return [b"x" * 10]
        return self._app(environ, start)

    def _refused(self, environ: dict[str, Any]) -> tuple[str, bytes] | None:
        """Return with which status and code a request is refused, if it is."""
        method = environ["REQUEST_METHOD"]
        if method == "POST" and environ["QUERY_STRING"].startswith("delete"):
            return "501 Not Implemented", b"NotImplemented"
        if self.fault == "path style" and environ["HTTP_HOST"] in self.endpoint:
            return _PATH_STYLE
        if self.fault == "locked" and method == "PUT" and "HTTP_X_AMZ_CHECKSUM_SHA256" not in environ:
            return _LOCKED
        return _FAULTS.get(self.fault)

    @contextmanager
    def serving(self) -> Generator["S3Server"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join(60)


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: Any) -> None:
        """Say nothing."""
