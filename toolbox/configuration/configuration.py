"""The shape of toolbox.json."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, PrivateAttr, StringConstraints, field_validator, model_validator

from backstay.policies.command_lists import CommandLists
from system.folders import is_plugin
from toolbox.configuration.foreign import EXCLUDING, INCLUDING, without_switches
from toolbox.configuration.template import render
from toolbox.configuration.users_servers import UsersServers
from toolbox.providers.answer import Answer, refused
from toolbox.providers.declaration import Declaration, Strict

ProviderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _-]{0,47}$")]

FOREIGN = frozenset(
    {"alwaysAllow", "autoApprove", "description", "gallery", "icon", "name", "note", "timeout", "trust"} | {"version"}
)
"""Fields that other hosts write and only they obey; none of them allows a call without asking."""


_LONGEST_START_S = 600
_LONGEST_IDLE_S = 86_400
_MILLISECONDS_FROM = 1000
"""Some hosts write seconds, others milliseconds; nobody means a quarter of an hour, nor less than a second."""


class ShapedCall(Strict):
    """Hold how one call of an action is made on one kind of server."""

    tool: tuple[str, ...]
    """The names the tool may have; the first that is offered counts."""
    arguments: dict[str, Any] | None = None
    """Templates over the arguments of the call; None passes them on as they are."""
    result: str = ""
    """Where in the server's answer the result stands, such as `data.messages`; empty for the whole answer."""
    succeeded: str | None = None
    """Where the answer says whether the call succeeded, for servers that report failures inside an answer."""
    error: str = "error"
    """Where the answer says then what went wrong."""

    @field_validator("tool", mode="before")
    @classmethod
    def _accept_one(cls, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(value)
        return (value,) if isinstance(value, str) else value

    def fill(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the server wants them, without those that are null. Raises ArgumentsInvalid."""
        filled = arguments if self.arguments is None else render(self.arguments, arguments)
        return {name: value for name, value in filled.items() if value is not None}

    def read(self, answer: Answer) -> Answer:
        """Return what the answer means."""
        if not answer.success:
            return answer
        if self.succeeded is not None and _at(answer.data, self.succeeded) is False:
            return refused(str(_at(answer.data, self.error) or ""))
        found = _at(answer.data, self.result)
        return Answer(success=True, data=answer.data if found is None else found)


Shape = dict[str, ShapedCall]


def _at(value: Any, path: str) -> Any:
    """Return what is at a dotted path, or None."""
    for part in path.split(".") if path else ():
        value = value.get(part) if isinstance(value, dict) else None
    return value


BY_SERVICE = "composio"
"""The grant by which a service keeps the accounts of users, and gives each an address."""


class AccountServiceAuth(Strict):
    """Say which of Composio's servers users get, and by which accounts; its key never shows in a repr."""

    api_key: str = Field(min_length=1, max_length=500, repr=False)
    mcp_server_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
    auth_config_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")]


class ServerAuth(Strict):
    """Say how people, or backstay itself, sign in at a server; its secret never shows in a repr."""

    grant: Literal["user", "client_credentials", "composio"] = "user"
    """Whose the connection is: of each user, or the operator's own for all runs; or of each user by Composio."""
    account_service: AccountServiceAuth | None = Field(default=None, alias="composio")
    """For the grant `composio`: what is asked for an address for each user."""
    client_id: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    """How the operator has registered backstay with the issuer; None: by a document, else by a registration."""
    client_secret: str | None = Field(default=None, min_length=1, repr=False)
    client_metadata_url: Annotated[str, Field(pattern=r"^https://[^/?#]+/[^?#]+$")] | None = None
    """Where a document describes backstay as a client; the page serves one."""
    register_client: bool = Field(default=True, alias="register")
    """Whether backstay may register itself where nothing else says how it is known."""
    scopes: list[Annotated[str, Field(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,200}$")]] = Field(default_factory=list)
    """What to ask for; empty: what the server says that it needs."""
    issuer: Annotated[str, Field(pattern=r"^https?://[^/?#]+[^?#]*$")] | None = None
    """The only issuer to use, whatever the server names."""
    days: Annotated[float, Field(gt=0, le=3650)] | None = None
    """After how many days a person signs in again; None: as long as the issuer renews the tokens."""

    @model_validator(mode="after")
    def _has_a_client(self) -> "ServerAuth":
        if (self.grant == BY_SERVICE) != (self.account_service is not None):
            raise ValueError("the grant `composio` and the field `composio` belong together; give both, or neither")
        if self.client_secret is not None and self.client_id is None:
            raise ValueError("`client_secret` belongs to `client_id`; give both, or neither")
        if self.grant == "client_credentials" and self.client_secret is None:
            raise ValueError("`client_credentials` needs `client_id` and `client_secret`")
        if self.client_secret is not None and self.issuer is None:
            raise ValueError("`client_secret` needs `issuer`, or the server could name another one to send it to")
        return self


class ServerEntry(Strict):
    """Hold one entry of `mcpServers`, as other hosts write them; its values never show in a repr."""

    type: Literal["stdio", "http", "streamable-http", "streamableHttp", "streamable_http", "sse"] | None = Field(
        default=None, validation_alias=AliasChoices("type", "transport", "transportType")
    )
    command: str | None = Field(default=None, min_length=1, repr=False)
    args: list[str] = Field(default_factory=list, repr=False)
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = Field(
        default=None, min_length=1, repr=False, validation_alias=AliasChoices("url", "serverUrl", "httpUrl")
    )
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    auth: ServerAuth | None = None
    """How to sign in; None: it is enough to know its address and `headers`."""
    disabled: bool = False
    init_timeout: Annotated[float, Field(gt=0, le=_LONGEST_START_S)] | None = Field(
        default=None, validation_alias=AliasChoices("initTimeout", "init_timeout")
    )
    """For how many seconds it may start and not answer yet; None: 60 for the first start of a command, else 15."""
    idle_timeout: Annotated[float, Field(ge=0, le=_LONGEST_IDLE_S)] | None = Field(
        default=None, validation_alias=AliasChoices("idleTimeout", "idle_timeout")
    )
    """After how many seconds without a call its connection is closed until the next one; 0: never."""
    include: list[str] | None = Field(default=None, validation_alias=AliasChoices("include", *INCLUDING))
    """The only tools that are offered, by name or with `*` for any characters; None offers all."""
    exclude: list[str] = Field(default_factory=list, validation_alias=AliasChoices("exclude", *EXCLUDING))
    """Tools that are not offered."""

    @model_validator(mode="before")
    @classmethod
    def _without_foreign(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return without_switches({key: value for key, value in data.items() if key not in FOREIGN})

    @field_validator("init_timeout", mode="before")
    @classmethod
    def _in_seconds(cls, value: Any) -> Any:
        return value / 1000 if isinstance(value, int | float) and value >= _MILLISECONDS_FROM else value

    @field_validator("args", "env", "headers", mode="before")
    @classmethod
    def _accept_null(cls, value: Any, info: Any) -> Any:
        if value is not None:
            return value
        return [] if info.field_name == "args" else {}

    @model_validator(mode="after")
    def _one_way_in(self) -> "ServerEntry":
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either `command` (stdio) or `url` (streamable HTTP), and not both")
        if self.command is not None and self.type not in {None, "stdio"}:
            raise ValueError("`type` says that it is reached over HTTP; give its `url`, or correct `type`")
        if self.url is not None and self.type == "stdio":
            raise ValueError("`type` says that it is started as a command; give its `command`, or correct `type`")
        if self.url is not None and (self.args or self.env or self.cwd):
            raise ValueError("`args`, `env` and `cwd` belong to `command`; remove them beside `url`")
        if self.command is not None and self.headers:
            raise ValueError("`headers` belong to `url`; remove them beside `command`")
        if self.command is not None and self.auth is not None:
            raise ValueError("`auth` belongs to `url`; remove it beside `command`")
        if self.auth is not None and "authorization" in map(str.lower, self.headers):
            raise ValueError("`auth` brings a header `Authorization` of its own; remove the one in `headers`")
        return self

    def offers(self, tool: str) -> bool:
        """Return whether a tool of the server is offered at all."""
        return not _is_named(tool, self.exclude) and (self.include is None or _is_named(tool, self.include))


def _is_named(tool: str, names: Iterable[str]) -> bool:
    return any(name == tool or ("*" in name and _matches(tool, name.split("*"))) for name in names)


def _matches(tool: str, parts: list[str]) -> bool:
    """Return whether the parts are in the tool's name one after another, the first and the last at its ends."""
    first, *middle, last = parts
    if len(first) + len(last) > len(tool) or not (tool.startswith(first) and tool.endswith(last)):
        return False
    place, end = len(first), len(tool) - len(last)
    for part in middle:
        place = tool.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


class JobGrant(Strict):
    """Name the tools of a plugin that its daemon may run without asking, as long as the plugin's files are these."""

    unasked: list[Annotated[str, Field(min_length=1)]]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Of the plugin's folder, as `backstay plugins grant` prints it."""
    leave_out: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    """Globs of files that do not count, such as a session that the plugin writes."""


class ProviderEntry(Strict):
    """Hold the settings of one provider."""

    trusted: bool = False
    """Whether the server's own annotations may lower the danger of its tools."""
    serial: bool = False
    """Whether its calls run one after another."""
    parallel: bool = False
    """Whether writes that are decided together may be made at the same time, in any order."""
    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None
    """How many of its calls may run at the same time; None sets no limit."""
    timeout: Annotated[float, Field(gt=0, le=3600)] | None = None
    """For how many seconds its tools may take to answer, where a tool has no timeout of its own."""
    tools: dict[str, Declaration] = Field(default_factory=dict)
    python: str | None = Field(default=None, min_length=1)
    """For a plugin: its interpreter; None is the one that runs the worker."""
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    """For a plugin: what it finds in its environment."""
    jobs: JobGrant | None = None
    """For a plugin: which jobs of the daemon run without asking."""
    jail: bool | None = None
    """For a plugin: whether it runs in a jail, with its folder read-only and no network; None: its `--help` alone."""
    uid: None = None
    """Accepted only as null until servers can run under another user."""

    @field_validator("uid", mode="before")
    @classmethod
    def _refuse_uid(cls, value: Any) -> Any:
        if value is not None:
            raise ValueError("not available in this version: uid")
        return value


class PythonEntry(Strict):
    """Configure a provider whose tools are Python functions: its module, and the provider whose tools they call."""

    module: str | None = Field(default=None, min_length=1)
    """A file `x.py`, a package `x/`, an importable module, or a bundled one; None finds it by the provider's name."""
    provider: str | None = None
    """The server or plugin whose tools the functions call."""
    shape: str | Shape = "plain"
    """How that server names its tools: a bundled shape by its name, or a mapping for each call."""
    secrets: dict[str, str] = Field(default_factory=dict, repr=False)
    """What `ToolContext.secret` returns, by name; never shown."""


class UserEntry(Strict):
    """List the providers that a user sees."""

    providers: list[str] = Field(default_factory=list)


class PluginsEntry(Strict):
    """Name the folder of the plugins, and what holds for those that do not say so themselves."""

    folder: str = Field(min_length=1)
    jail: bool | None = None
    """Whether they run in jails; None: their `--help` alone."""


class Configuration(Strict):
    """Hold a whole toolbox.json."""

    servers: dict[ProviderName, ServerEntry] = Field(default_factory=dict, alias="mcpServers")
    providers: dict[str, ProviderEntry] = Field(default_factory=dict)
    plugins: str | PluginsEntry | None = None
    """The folder of the plugins: each folder in it that holds a cli.py is a provider of that name."""
    python: dict[ProviderName, PythonEntry] = Field(default_factory=dict)
    """Providers whose tools are Python functions; `actions` is another name of it."""
    safety: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    """Modules with the operator's checks of calls."""
    workspace: CommandLists = Field(default_factory=CommandLists)
    """Which commands a shell may run."""
    users: dict[str, UserEntry] | None = None
    users_servers: UsersServers | None = None
    """What users may add by themselves; None: nothing."""
    for_editors: str | None = Field(default=None, alias="$schema")
    """By what an editor checks the file."""

    _unset: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def signs_in(self) -> bool:
        """Return whether a server wants its users, or backstay itself, to sign in."""
        return any(server.auth is not None for server in self.servers.values())

    @property
    def unset(self) -> Mapping[str, str]:
        """Return the providers that lack a variable, and which."""
        return self._unset

    def note_unset(self, unset: Mapping[str, str]) -> None:
        """Say which providers lack a variable."""
        self._unset = dict(unset)

    @model_validator(mode="before")
    @classmethod
    def _with_other_names(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "actions" not in data:
            return data
        if "python" in data:
            raise ValueError("`actions` is another name of `python`; put all entries under `python`")
        return {"python" if key == "actions" else key: value for key, value in data.items()}

    @field_validator("workspace", mode="before")
    @classmethod
    def _no_unknown_list(cls, value: Any) -> CommandLists:
        return CommandLists.model_validate(value, extra="forbid")

    def of(self, provider: str) -> ProviderEntry:
        """Return the settings of a provider, or the defaults."""
        return self.providers.get(provider) or ProviderEntry()

    def plugin(self, name: str) -> ProviderEntry:
        """Return the settings of a plugin; what it does not say about its jail, its folder's entry does."""
        entry = self.of(name)
        if entry.jail is not None or not isinstance(self.plugins, PluginsEntry):
            return entry
        return entry.model_copy(update={"jail": self.plugins.jail})

    def plugin_folders(self, folder: Path) -> dict[str, Path]:
        """Return the plugins by name when toolbox.json lies in this folder: a folder that holds a cli.py is one."""
        named = self.plugins.folder if isinstance(self.plugins, PluginsEntry) else self.plugins
        place = folder / named if named else None
        if place is None or not place.is_dir():
            return {}
        return {path.name: path for path in sorted(place.iterdir()) if is_plugin(path)}

    def granted(self, user_id: str, providers: Iterable[str]) -> frozenset[str]:
        """Return which of the providers this user sees."""
        if self.users is None:
            return frozenset(providers)
        entry = self.users.get(user_id) or self.users.get("*")
        return frozenset(providers) & frozenset(entry.providers) if entry else frozenset()

    def withheld(self, user_id: str, providers: Iterable[str]) -> dict[str, str]:
        """Return why this user does not see other providers than these, by provider."""
        users = self.users or {}
        who = next((name for name in (user_id, "*") if name in users), None)
        granted = self.granted(user_id, providers)
        where = "users names neither the user nor *" if who is None else f"users.{who}.providers does not name it"
        off = {
            name: "not connected: disabled in toolbox.json" for name, server in self.servers.items() if server.disabled
        }
        return off | {name: f"denied: {where} in toolbox.json" for name in providers if name not in granted}
