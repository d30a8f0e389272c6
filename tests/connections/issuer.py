"""An issuer of tokens with refresh tokens that hold once, and an MCP server that takes them, over HTTPS on loopback."""

import asyncio
import base64
import hashlib
import ipaddress
import json
import secrets
import ssl
import time
from collections import Counter
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mcp.server.mcpserver import MCPServer
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult, ToolAnnotations
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.serving import served

account: ContextVar[str] = ContextVar("account", default="")


FORM = {"type": "object", "properties": {"signed_in": {"type": "boolean"}}}
ASKS = ElicitRequest(params=ElicitRequestFormParams(message="sign in; then it goes on", requested_schema=FORM))
ASKED = InputRequiredResult(input_requests={"q": ASKS}).model_dump(mode="json", by_alias=True, exclude_none=True)
"""A question of the server's own, in words that could be ours."""


@dataclass
class Authority:
    """Hold the files of a certificate for this machine, and of the authority that signed it."""

    trusted: str
    certificate: str
    key: str


def authority_in(folder):
    """Make a certificate authority and a certificate for 127.0.0.1 and localhost."""
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority for tests")])
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]

    def made(subject, public, *, ca):
        now = datetime.now(UTC)
        built = x509.CertificateBuilder().subject_name(subject).issuer_name(root_name).public_key(public)
        built = built.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        built = built.not_valid_after(now + timedelta(days=2))
        built = built.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        if not ca:
            built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return built.sign(root_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    paths = [folder / part for part in ("ca.pem", "server.pem", "server.key")]
    paths[0].write_bytes(made(root_name, root_key.public_key(), ca=True))
    paths[1].write_bytes(made(name, key.public_key(), ca=False))
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain
    paths[2].write_bytes(key.private_bytes(*pem))
    return Authority(*map(str, paths))


@asynccontextmanager
async def secure(app, authority):
    """Serve an application over HTTPS on a free port of 127.0.0.1; yields its address."""
    quiet = {"log_config": None, "access_log": False, "ws": "none", "timeout_graceful_shutdown": 1}
    config = uvicorn.Config(app, ssl_certfile=authority.certificate, ssl_keyfile=authority.key, **quiet)
    async with served(app, config) as url:
        yield url.replace("http://", "https://")


@dataclass
class Token:
    account: str
    client: str
    resource: str
    scope: str
    until: float


@dataclass
class Issuer:
    """Give tokens to whoever comes; tests turn what it says wrong."""

    url: str = ""
    expires_in: float = 3600.0
    person: str = "nobody"
    """Who is signed in at the issuer in the browser that comes next."""
    scopes: tuple = ("notes",)
    said: dict = field(default_factory=dict)
    """What its metadata says otherwise; None leaves a field out."""
    iss: str | None = ""
    """What it calls itself as it sends people back; empty: its name, None: nothing."""
    pause_s: float = 0.0
    status: int = 0
    """With what it refuses to renew."""
    renewal: tuple | None = None
    """With what status and body it answers a renewal, without having done anything."""
    token: str = ""
    """What it gives as access token instead of one of its own."""
    given: dict = field(default_factory=dict)
    """What it says otherwise as it gives tokens."""
    fault: bytes = b""
    """With what body it refuses a code."""
    registers: dict = field(default_factory=dict)
    """What it says otherwise of a client that it registers."""
    lost: set = field(default_factory=set)
    """The clients that it has forgotten."""
    clients: dict = field(default_factory=dict)
    codes: dict = field(default_factory=dict)
    access: dict = field(default_factory=dict)
    refresh: dict = field(default_factory=dict)
    used: set = field(default_factory=set)
    counted: Counter = field(default_factory=Counter)
    asked: list = field(default_factory=list)
    down: dict = field(default_factory=dict)
    """With what status it answers at some paths."""
    registering: list = field(default_factory=list)
    proven: list = field(default_factory=list)
    """By which method and with which secret each client has asked for tokens, or to revoke them."""

    @property
    def app(self):
        paths = {"authorize": self.authorize, "token": self.exchange, "register": self.register, "revoke": self.revoke}
        routes = [Route(f"/{path}", endpoint, methods=["GET", "POST"]) for path, endpoint in paths.items()]
        names = ("oauth-authorization-server", "openid-configuration")
        return Starlette(routes=[*(Route(f"/.well-known/{name}", self.described) for name in names), *routes])

    async def described(self, request):
        if status := self.down.get(request.url.path):
            return Response("<html>bad gateway</html>", status)
        self.counted["described"] += 1
        told = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "revocation_endpoint": f"{self.url}/revoke",
            "scopes_supported": list(self.scopes),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
            **self.said,
        }
        return JSONResponse({name: value for name, value in told.items() if value is not None})

    async def register(self, request):
        self.counted["registered"] += 1
        said = await request.json()
        self.registering.append(said)
        client = {**said, "client_id": f"client-{secrets.token_hex(4)}", "client_secret": secrets.token_hex(16)}
        client |= {"token_endpoint_auth_method": "client_secret_post", **self.registers}
        self.clients[client["client_id"]] = client
        return JSONResponse(client, 201)

    async def authorize(self, request):
        asked = dict(request.query_params)
        self.asked.append(asked)
        if asked["client_id"] in self.lost:
            return Response("this client is not known", 400)
        code = secrets.token_urlsafe(16)
        self.codes[code] = {**asked, "account": self.person}
        said = {"code": code, "state": asked["state"], "iss": self.url if self.iss == "" else self.iss}
        back = urlencode({name: value for name, value in said.items() if value is not None})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}")

    async def exchange(self, request):
        form = dict(await request.form())
        kind = form["grant_type"]
        self.counted[kind] += 1
        self.proven.append(proof_in(form, request.headers.get("authorization")))
        answer = self._answer(kind, form, "authorization" in request.headers)
        await asyncio.sleep(self.pause_s)
        return answer

    def _answer(self, kind, form, has_header):
        match kind:
            case "authorization_code" if self.fault:
                return Response(self.fault, 400, {"content-type": "application/json"})
            case "authorization_code":
                known = self.codes.pop(form["code"], None)
                challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
                fits = known and base64.urlsafe_b64encode(challenge).decode().rstrip("=") == known["code_challenge"]
                if not fits or form["redirect_uri"] != known["redirect_uri"]:
                    return JSONResponse({"error": "invalid_grant"}, 400)
                return self._given(known["account"], known["client_id"], form["resource"], known.get("scope", ""))
            case "refresh_token":
                if self.status:
                    return JSONResponse({"error": "server_error"}, self.status)
                if self.renewal:
                    return Response(self.renewal[1], self.renewal[0])
                old = self.refresh.pop(form["refresh_token"], None)
                if old is None:
                    self.counted["replayed"] += form["refresh_token"] in self.used
                    return JSONResponse({"error": "invalid_grant"}, 400)
                self.used.add(form["refresh_token"])
                return self._given(old.account, old.client, old.resource, old.scope)
            case _:
                if form.get("client_secret") != "own secret of the service" and not has_header:
                    return JSONResponse({"error": "invalid_client"}, 401)
                return self._given("the service", "service", form["resource"], form.get("scope", ""), renews=False)

    def _given(self, who, client, resource, scope, *, renews=True):
        held = Token(who, client, resource, scope, time.time() + min(self.expires_in, 1e9))
        access, refresh = self.token or f"at-{secrets.token_urlsafe(24)}", f"rt-{secrets.token_urlsafe(24)}"
        self.access[access] = held
        told = {"access_token": access, "token_type": "bearer", "expires_in": self.expires_in, "scope": scope}
        if renews:
            self.refresh[refresh] = held
            told["refresh_token"] = refresh
        return JSONResponse({**told, "expires_in": int(self.expires_in), **self.given})

    async def revoke(self, request):
        form = dict(await request.form())
        self.counted["revoked"] += 1
        self.proven.append(proof_in(form, request.headers.get("authorization")))
        self.access.pop(form["token"], None)
        self.refresh.pop(form["token"], None)
        return JSONResponse({})

    def forget(self, *, access=True, refresh=False):
        """Revoke what was given, as its administrator would."""
        if access:
            self.access.clear()
        if refresh:
            self.refresh.clear()

    @property
    def secrets(self):
        """Every token and secret that it has ever given."""
        known = [*self.access, *self.refresh, *self.used, *self.codes]
        return [*known, *(client["client_secret"] for client in self.clients.values())]


def proof_in(form, authorization):
    """Return by which method a client proves who it is, and with which secret."""
    if authorization is not None:
        return "client_secret_basic", base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")[2]
    return ("client_secret_post" if "client_secret" in form else "none"), form.get("client_secret")


class Guarded:
    """Let in who brings a token for this server, and say to others where they get one."""

    def __init__(self, app, issuer):
        self.app, self.issuer = app, issuer
        self.url, self.resource, self.servers = "", "", None
        self.path = "/mcp"
        self.metadata_at = ""
        """Where it says that it describes itself; empty: where it does, None: nothing."""
        self.down = {}
        """With what status it answers at some paths."""
        self.scopes = ["notes"]
        """What it says that it needs; None: nothing."""
        self.wanted = ""
        self.says = {"error": "who are you?"}
        """The body with which it refuses a token."""
        self.repeats = b""
        """The requests that hold this are refused in words that repeat their token."""
        self.seen = []

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        if status := self.down.get(request.url.path):
            await Response("<html>bad gateway</html>", status)(scope, receive, send)
            return
        if request.url.path.startswith("/.well-known/oauth-protected-resource"):
            told = {"resource": self.resource or f"{self.url}{self.path}", "scopes_supported": self.scopes}
            told["authorization_servers"] = self.servers or [self.issuer.url]
            await JSONResponse(told)(scope, receive, send)
            return
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.seen.append(given)
        token = self.issuer.access.get(given)
        if token is None or token.until < time.time() or token.resource != f"{self.url}{self.path}":
            at = self.metadata_at or f"{self.url}/.well-known/oauth-protected-resource{self.path}"
            named = "" if self.metadata_at is None else f' resource_metadata="{at}"'
            await JSONResponse(self.says, 401, {"www-authenticate": f"Bearer{named}"})(scope, receive, send)
            return
        body = await request.body()

        first = [{"type": "http.request", "body": body, "more_body": False}]

        async def again():
            return first.pop() if first else await receive()

        if self.wanted and b"tools/call" in body and self.wanted not in token.scope.split():
            headers = {"www-authenticate": f'Bearer error="insufficient_scope", scope="{self.wanted}"'}
            await JSONResponse({"error": "not that"}, 403, headers)(scope, receive, send)
            return
        if self.repeats and self.repeats in body:
            told = {"jsonrpc": "2.0", "id": json.loads(body)["id"]}
            told["error"] = {"code": -32000, "message": f"introspection of {given} failed"}
            await JSONResponse(told)(scope, receive, send)
            return
        if b'"ask_me"' in body and b"inputResponses" not in body:
            await JSONResponse({"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": ASKED})(scope, receive, send)
            return
        account.set(f"{token.account} {given}")
        await self.app(scope, again, send)


@dataclass
class Notes:
    """An MCP server at which each account has notes."""

    issuer: Issuer
    written: list = field(default_factory=list)
    echo: bool = False
    """Whether it repeats the token of a call in what it answers."""

    def __post_init__(self):
        server = MCPServer("notes")

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def whoami() -> str:
            """Say whose notes these are."""
            who, token = account.get().rsplit(" ", 1)
            return f"{who} came with {token}" if self.echo else who

        @server.tool()
        def write(text: str) -> str:
            """Write a note."""
            self.written.append((account.get().split(" ")[0], text))
            return f"written by {account.get().split(' ')[0]}"

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def ask_me() -> str:
            """Ask the person something."""
            return "asked"

        self.app = server.streamable_http_app(stateless_http=True, json_response=True)
        self.guard = Guarded(self.app, self.issuer)

    @property
    def url(self):
        return f"{self.guard.url}/mcp"


@asynccontextmanager
async def offered(authority, issuer=None):
    """Serve an issuer and its notes, each on a port of its own."""
    issuer = issuer or Issuer()
    notes = Notes(issuer)
    async with secure(issuer.app, authority) as issuer.url, secure(notes.guard, authority) as notes.guard.url:
        yield issuer, notes


async def go_to(departure, authority):
    """Follow a person's browser to the issuer; return what it brings back, by name."""
    trusted = ssl.create_default_context(cafile=authority.trusted)
    async with httpx2.AsyncClient(verify=trusted, follow_redirects=False) as browser:
        answer = await browser.get(departure)
    back = urlsplit(answer.headers["location"])
    return {name: values[0] for name, values in parse_qs(back.query).items()}
