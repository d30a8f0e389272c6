"""An MCP server at which each user signs in: a connection for each, and a question to whoever is not signed in."""

from collections.abc import Callable
from dataclasses import replace

from backstay.errors import BackstayError, ToolUnavailable
from backstay.shown import one_line
from backstay.tools.connection import Connection
from backstay.tools.tool import Safety
from toolbox.mcp.authorization import TokenSource
from toolbox.mcp.open_servers import OpenServer, OpenServers
from toolbox.mcp.scrubbed_server import ScrubbedServer
from toolbox.mcp.scrubbing import ListingNumbers, TokenScrubber
from toolbox.providers.answer import Answer, refused
from toolbox.providers.declaration import Declaration
from toolbox.providers.elicitation import ElicitationRequest, InputRequired
from toolbox.providers.listing import ListedTool, Listing, ToolAnnotations
from toolbox.providers.provider import NOBODYS, NotSent, ProviderCall
from toolbox.providers.server_tasks import TaskRequest

SIGN_IN = "sign_in"
"""The tool by which a run asks its user to sign in."""
STATE = "backstay:connection"
"""Marks the question whether a person has signed in."""
_MOST_USERS = 200


class UserServers:
    """Offer one server to all users, to each by their own connection."""

    def __init__(
        self,
        name: str,
        tokens: TokenSource,
        make: Callable[[str, Connection, TokenScrubber], ScrubbedServer],
        kind: str = "mcp",
    ) -> None:
        """`make` opens the server for a user, by what their connection grants; it notes what is to be masked."""
        self.name, self.kind = name, kind
        self.tokens, self.make = tokens, make
        self.open = OpenServers["UserServer"](_MOST_USERS)
        self.lists = ListingNumbers()

    @property
    def needs_owner(self) -> bool:
        """Return True: a person who proved nothing has no connection."""
        return True

    def of(self, owner: str) -> "UserServer":
        """Return the server as one user has it."""
        return self.open.get(owner, lambda: UserServer(self, owner))

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return no tool: each user has their own."""
        return Listing(reason=NOBODYS)

    async def call(self, call: ProviderCall) -> Answer:
        """Raise ToolUnavailable: nobody calls it."""
        raise ToolUnavailable(f"{self.name}: {NOBODYS}")

    async def close(self) -> None:
        """Close it for all users."""
        await self.open.close()


class UserServer(OpenServer):
    """Offer one server to one user."""

    def __init__(self, servers: UserServers, owner: str) -> None:
        """Open nothing yet."""
        super().__init__()
        self.name, self.kind = servers.name, servers.kind
        self._servers = servers
        self._owner = owner
        self._connection = ""
        """The sign-in with which `_server` was opened."""
        self._server: ScrubbedServer | None = None
        self._scrubber = TokenScrubber()

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return the user's tools, and the one by which a run asks for a sign-in."""
        if not self._owner:
            return Listing(reason=NOBODYS)
        try:
            known = await self._known()
        except BackstayError as error:
            return Listing(reason=str(error))
        if known is None:
            return self._listed(Listing(), "")
        with self.used():
            found = await self._of(known).list(fresh=fresh)
            if found.reason is not None and await self._has_ended():
                # Its tools stay known: a call of one asks the person.
                found = replace(found, reason=None)
            return self._listed(found, known.id)

    async def wait_started(self, patience_s: float) -> None:
        """Wait for a server that is starting, where the user is signed in."""
        try:
            known = await self._known() if self._owner else None
        except BackstayError:
            return
        if known is not None:
            with self.used():
                await self._of(known).wait_started(patience_s)

    async def call(self, call: ProviderCall) -> Answer:
        """Make a call with the user's token; where there is none that holds, ask the person for a sign-in first."""
        if not self._owner:
            raise ToolUnavailable(f"{self.name}: {NOBODYS}")
        reply = call.reply
        if reply is not None and reply.required.state == STATE:
            if reply.declined or reply.content is not True:
                return refused(f"{self._owner} did not sign in at {self.name}")
            call = replace(call, reply=None)
        with self.used():
            return await self._called(call)

    async def follow(self, request: TaskRequest) -> Answer:
        """Ask about a task by which the server has answered; raises ToolUnavailable where the user is not signed in."""
        known = await self._known() if self._owner else None
        if known is None:
            raise ToolUnavailable(f"{self.name}: {one_line(self._owner, 80) or 'nobody'} is not signed in at it")
        with self.used():
            return await self._of(known).follow(request)

    async def close(self) -> None:
        """End the connection to the server."""
        if self._server is not None:
            await self._server.close()

    async def _called(self, call: ProviderCall) -> Answer:
        known = await self._known()
        if known is None:
            return self._question()
        if call.tool == SIGN_IN:
            if await self._wants_more():
                return self._question()
            if call.still_listed is not None:
                call.still_listed(await self.list())
            return Answer(success=True, data=f"{self._owner} is signed in at {self.name}; search for its tools again")
        try:
            return await self._of(known).call(call.relisted(lambda found: self._listed(found, known.id)))
        except (NotSent, ToolUnavailable) as error:
            # In both cases the tool has not seen the call.
            if await self._has_ended() or (isinstance(error, NotSent) and await self._wants_more()):
                return self._question()
            raise

    async def _known(self) -> Connection | None:
        return await self._servers.tokens.usable(self._owner, self.name)

    async def _has_ended(self) -> bool:
        try:
            return await self._known() is None
        except BackstayError:
            return False

    async def _wants_more(self) -> bool:
        known = await self._known()
        granted = set() if known is None or known.grant is None else set(known.grant.scope.split())
        return known is None or not set(known.wanted.split()) <= granted

    def _of(self, known: Connection) -> ScrubbedServer:
        """Return the server, opened anew for another sign-in: a session is of whoever began it."""
        # An address that was given anew is another server; a token is added to each request as it is then.
        opened = known.id if self.kind == "mcp" else f"{known.id} {known.version}"
        if self._server is None or self._connection != opened:
            if self._server is not None:
                self._servers.open.end(self._server)
            self._server, self._connection = self._servers.make(self._owner, known, self._scrubber), opened
        return self._server

    def _listed(self, found: Listing, connection: str) -> Listing:
        tools = tuple(tool for tool in found.tools if tool.name != SIGN_IN)
        return self._servers.lists.numbered(
            replace(found, tools=(*tools, self._sign_in()), connection=connection, problems=tuple(found.problems))
        )

    def _sign_in(self) -> ListedTool:
        return ListedTool(
            name=SIGN_IN,
            description=f"Ask the user to sign in at {self.name}. Use it when the tools of {self.name} are missing, "
            "or when one refuses for want of rights; afterwards, search for tools again.",
            input_schema={"type": "object", "properties": {}, "additionalProperties": False},
            annotations=ToolAnnotations(read_only=True, open_world=False),
            declared=Declaration(safety=Safety.READ_ONLY, content="own", egress=False),
            of_engine=True,
            always=True,
        )

    def _question(self) -> Answer:
        """Return the question whether the person has signed in; nothing was sent."""
        url, mark = self._servers.tokens.link(self._owner, self.name)
        who = one_line(self._owner, 80)
        where = "" if url else f" with `backstay connect {self.name} --user {who}`"
        form = {"type": "boolean", "title": "signed in", "$comment": mark}
        message = f"{who} must sign in at {self.name}{where}; then the call goes on."
        request = ElicitationRequest(key="signed_in", message=message, form=form, url=url)
        return Answer(success=False, question=InputRequired(requests=(request,), state=STATE))
