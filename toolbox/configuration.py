"""The shape of toolbox.json."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from toolbox.declaration import Declaration
from toolbox.strict import Strict

ProviderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _-]{0,47}$")]


class ServerEntry(Strict):
    """Hold one entry of `mcpServers`, as other hosts write them; its values never show in a repr."""

    type: Literal["stdio", "http", "streamable-http", "streamableHttp", "streamable_http"] | None = None
    command: str | None = Field(default=None, min_length=1, repr=False)
    args: list[str] = Field(default_factory=list, repr=False)
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = Field(default=None, min_length=1, repr=False)
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    disabled: bool = False

    @field_validator("type", mode="before")
    @classmethod
    def _refuse_sse(cls, value: Any) -> Any:
        if value == "sse":
            raise ValueError("not available in this version: sse; give the streamable HTTP url")
        return value

    @field_validator("args", "env", "headers", mode="before")
    @classmethod
    def _accept_null(cls, value: Any, info: Any) -> Any:
        return ([] if info.field_name == "args" else {}) if value is None else value

    @model_validator(mode="after")
    def _one_way_in(self) -> "ServerEntry":
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either `command` (stdio) or `url` (streamable HTTP), and not both")
        if self.url is not None and (self.args or self.env or self.cwd):
            raise ValueError("`args`, `env` and `cwd` belong to `command`; remove them beside `url`")
        if self.command is not None and self.headers:
            raise ValueError("`headers` belong to `url`; remove them beside `command`")
        return self


class ProviderEntry(Strict):
    """Hold what the operator says of one provider."""

    trusted: bool = False
    """Whether the server's own annotations may lower the danger of its tools."""
    serial: bool = False
    """Whether its calls run one after another."""
    tools: dict[str, Declaration] = Field(default_factory=dict)
    uid: None = None
    """Accepted only as null until servers can run under another user."""

    @field_validator("uid", mode="before")
    @classmethod
    def _refuse_uid(cls, value: Any) -> Any:
        if value is not None:
            raise ValueError("not available in this version: uid")
        return value


class UserEntry(Strict):
    """Say which providers a user sees."""

    providers: list[str] = Field(default_factory=list)


class Configuration(Strict):
    """Hold a whole toolbox.json."""

    servers: dict[ProviderName, ServerEntry] = Field(default_factory=dict, alias="mcpServers")
    providers: dict[str, ProviderEntry] = Field(default_factory=dict)
    plugins: str | None = None
    users: dict[str, UserEntry] | None = None

    def of(self, provider: str) -> ProviderEntry:
        """Return what is said of a provider, or the defaults."""
        return self.providers.get(provider) or ProviderEntry()

    def granted(self, user_id: str) -> frozenset[str]:
        """Return the providers this user sees."""
        active = frozenset(name for name, server in self.servers.items() if not server.disabled)
        if self.users is None:
            return active
        entry = self.users.get(user_id) or self.users.get("*")
        return active & frozenset(entry.providers) if entry else frozenset()

    def withheld(self, user_id: str) -> dict[str, str]:
        """Return why this user does not see the other providers, by provider."""
        users = self.users or {}
        who = user_id if user_id in users else "*" if "*" in users else None
        granted = self.granted(user_id)
        where = "users names neither the user nor *" if who is None else f"users.{who}.providers does not name it"
        return {
            name: "not connected: disabled in toolbox.json" if server.disabled else f"denied: {where} in toolbox.json"
            for name, server in self.servers.items()
            if name not in granted
        }
