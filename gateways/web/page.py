"""The objects that every part of the page uses, and how it takes requests and gives answers.

Another module adds to the page by a function `routes(page: Page) -> list[BaseRoute]`, which it enters into the list in
`gateways/web/app.py`. It makes its routes with `page.get` and `page.post`, which find out who is there and refuse
strangers, and so an endpoint is only reached by a person, as `visitor`:

    def routes(page: Page) -> list[BaseRoute]:
        async def show(request: Request, visitor: Visitor) -> Response:
            run = page.backstay.run(request.path_params["workflow_id"])
            return page.render(request, visitor, "run.html", status=await run.status())

        async def pause(request: Request, visitor: Visitor, sent: Sent) -> Response:
            ...  # `sent` has been proved to come from our own form, or from a program with a bearer token
            return page.done(request, visitor, f"/runs/{...}", "paused")

        return [page.get("/runs/{workflow_id:id}", show), page.post("/runs/{workflow_id:id}/pause", pause)]

An endpoint asks `page.seeing` whether the visitor may see what it shows, and raises errors of backstay,
which become answers here. A template extends `base.html`, puts `{{ csrf_field(csrf) }}` of `parts.html` into every
form, and holds no script and no style of its own: the policy of the page forbids both.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import structlog
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from backstay.approvals.decided_words import decided_words
from backstay.client import Backstay
from backstay.errors import BackstayError
from backstay.policies.policy import Policy
from backstay.settings import Settings
from backstay.tools.connection import SignIns
from backstay.tools.own_server import OwnServerRegistry
from backstay.version import version
from gateways.links import Seals, Stranger
from gateways.web.failures import headers_of, kind_of, status_of
from gateways.web.guard import TooMuch, error_body, is_below_api, is_for_programs
from gateways.web.identity import Identity, Visitor, may_start
from gateways.web.sent import Submission, read_sent
from gateways.web.showing import FoldedArgument, is_folded
from gateways.web.watching import Watcher
from gateways.web.words import FILTERS, visible
from people.decide.seeing import Seeing
from people.runs.finding import KnownRun, RunSources, find
from store.store import Store

FORM_S = 12 * 3600.0
"""How long a form that was shown can be sent."""
SAID_S = 600.0
_TEMPLATES = Path(__file__).parent / "templates"
log = structlog.get_logger("backstay.web")

Looking = Callable[[Request, Visitor], Awaitable[Response]]
Acting = Callable[[Request, Visitor, Submission], Awaitable[Response]]


class PageRoutes:
    """Take requests of people we know, and answer with pages, or with JSON for programs."""

    def __init__(
        self,
        settings: Settings,
        backstay: Backstay,
        store: Store,
        policy: Policy,
        *,
        identity: Identity,
        seals: Seals,
        sign_ins: SignIns | None = None,
        own_servers: OwnServerRegistry | None = None,
    ) -> None:
        """`backstay` signs what people decide, when the approver key is set; `policy` is the operator's.

        `sign_ins` let people sign in at servers; None where they sign in nowhere. `own_servers` adds servers of users;
        None where the operator allows none.
        """
        self.sign_ins, self.own_servers = sign_ins, own_servers
        self.settings, self.backstay, self.store = settings, backstay, store
        self.seeing = Seeing(policy, self.store)
        self.sources = RunSources(backstay, store, self.seeing)
        self.watcher = Watcher(self.store)
        self.identity = identity
        self.seals = seals
        self._templates = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=visible,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters: dict[str, Any] = self._templates.filters
        filters.update(FILTERS, decided_words=decided_words, foldable=FoldedArgument.of, is_folded=is_folded)
        known: dict[str, Any] = self._templates.globals
        known.update(request_path=request_path, run_path=run_path, version=version())
        known.update(run_place=run_place, run_query=run_query, blob_path=blob_path)

    @property
    def key(self) -> bytes | None:
        """Return the key that proves who decided; None where decisions are recorded as unverified."""
        return self.settings.approver_key_bytes

    def may_start(self, visitor: Visitor) -> bool:
        """Return whether a visitor may start runs: whoever a link lets in, and elsewhere whom the operator names."""
        return may_start(self.identity, self.settings.web_starters, visitor.by)

    def get(self, path: str, endpoint: Looking) -> Route:
        """Return a route that shows something to people we know."""

        async def looked_at(request: Request) -> Response:
            return await endpoint(request, await self.identity.visitor(request))

        return Route(path, looked_at, methods=["GET"])

    def post(self, path: str, endpoint: Acting) -> Route:
        """Return a route that does something for people we know, when their own form or program asks for it."""

        async def acted_on(request: Request) -> Response:
            visitor = await self.identity.visitor(request)
            return await endpoint(request, visitor, await read_sent(request, visitor, self.seals))

        return Route(path, acted_on, methods=["POST"])

    async def run(self, request: Request, visitor: Visitor) -> KnownRun:
        """Return the run that an address names, to a visitor who may see it; raises RunNotFound."""
        named = request.path_params["workflow_id"], request.query_params.get("run")
        return await find(self.sources, visitor.by, *named)

    def csrf(self, visitor: Visitor) -> str:
        """Return what a form of this visitor must carry."""
        return self.seals.seal("form", {"by": visitor.by}, FORM_S)

    def render(self, request: Request, visitor: Visitor, template: str, status: int = 200, **said: Any) -> Response:
        """Return a page for a visitor; a template also knows `visitor`, `csrf`, `message` and `signs`.

        Raises HTTPException below the API, where there are no pages.
        """
        if is_below_api(request.scope):
            raise HTTPException(404)
        csrf = self.csrf(visitor)
        said_before = self._said(request, visitor)
        values = {"visitor": visitor, "csrf": csrf, "message": said_before, "signs": self.key is not None}
        values["connects"] = self.sign_ins is not None or self.own_servers is not None
        text = self._templates.get_template(template).render(values | said)
        return HTMLResponse(text, status, {"Vary": "Accept"})

    def json(self, visitor: Visitor, said: Any, status: int = 200) -> Response:
        """Return JSON, and what proves that this program is not a foreign page."""
        return JSONResponse(said, status, {"Vary": "Accept", "Backstay-Csrf": self.csrf(visitor)})

    def done(self, request: Request, visitor: Visitor, path: str, message: str, said: Any = None) -> Response:
        """Answer what was done: lead a browser back to a page that says so, or tell a program `said`."""
        if is_for_programs(request.scope):
            return self.json(visitor, said)
        token = self.seals.seal("said", {"by": visitor.by, "message": message[:1000]}, SAID_S)
        return RedirectResponse(f"{path}?said={token}", 303)

    def _said(self, request: Request, visitor: Visitor) -> str:
        """Return what we told this visitor to be shown here; nobody else can put words on a page."""
        said = self.seals.opened("said", request.query_params.get("said", ""))
        return str(said["message"]) if said is not None and said.get("by") == visitor.by else ""

    async def fault(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request that could not be granted, as the page or the JSON of an error."""
        status, message = status_of(error)
        if status >= 500:
            log.warning("web.failed", path=request.url.path, status=status, error=type(error).__name__)
        headers = {"Vary": "Accept", **headers_of(error)}
        if is_for_programs(request.scope):
            return JSONResponse(error_body(kind_of(error, status), message), status, headers)
        text = self._templates.get_template("fault.html").render(status=status, why=message, visitor=None)
        return HTMLResponse(text, status, headers)

    @property
    def faults(self) -> dict[Any, Any]:
        """Return what answers which exception."""
        return dict.fromkeys((BackstayError, HTTPException, Stranger, TooMuch, Exception), self.fault)


def request_path(workflow_id: str, request_id: str) -> str:
    """Return where a request is shown."""
    return f"/requests/{quote(workflow_id, safe='')}/{quote(request_id, safe='')}"


def run_path(workflow_id: str) -> str:
    """Return where a run is shown."""
    return f"/runs/{quote(workflow_id, safe='')}"


def blob_path(workflow_id: str, ref: str) -> str:
    """Return where what a run has stored is shown."""
    return f"/blobs/{quote(workflow_id, safe='')}/{quote(ref, safe='')}"


def run_place(found: KnownRun) -> str:
    """Return where the page of this run is, also of one whose name was used again."""
    return f"{run_path(found.workflow_id)}{run_query(found)}"


def run_query(found: KnownRun) -> str:
    """Return what an address must say beside the workflow id to name this run."""
    return f"?run={quote(found.run_id, safe='')}" if found.is_older else ""
