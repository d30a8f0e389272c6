"""Read the settings, once per process."""

import difflib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from backstay.authority import Principal
from backstay.canonical import KeyTwice, read_json
from backstay.errors import SettingsInvalid
from backstay.quoting import quoted
from backstay.shown import one_line, shell_words
from backstay.tools.trying import FOLLOWED_S, TRANSIENT_S
from backstay.trust import is_trusted, trust
from backstay.variables import (
    ENV_FILE,
    KEY,
    PREFIX,
    environment,
    process_environment,
    secret_files,
    secrets_of_address,
    secrets_of_variables,
    spellings,
)

_SHORTEST_SECRET = 8
_SHORTEST_KEY = 16
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_EXPORTERS = {
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
}
_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/(?P<prefix>[A-Za-z0-9!_.*()/-]+))?")
_LONGEST_PLACE = 500
_SDK_DISABLED = "OTEL_SDK_DISABLED"
OBEYED: Mapping[str, str | None] = {
    ".env": None,
    "toolbox.json": "toolbox",
    "policy.yaml": "policy",
    "profiles.yaml": "profiles",
    "definitions": "definitions",
    "models.yaml": "models",
    "models.json": "models",
    ".backstay": "home",
}
"""What is obeyed when it is found in the current folder, and the setting that names another place for it, if any."""


def _listed(data: Any) -> Any:
    """Split a comma-separated list."""
    return tuple(part.strip() for part in data.split(",") if part.strip()) if isinstance(data, str) else data


def _blank_as_none(data: Any) -> Any:
    return None if isinstance(data, str) and not data.strip() else data


SecretList = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_listed)]
Secret = Annotated[SecretStr | None, BeforeValidator(_blank_as_none)]
Text = Annotated[str | None, BeforeValidator(_blank_as_none)]


class Price(BaseModel):
    """The price of a model, in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """None: the same as other input."""
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """For input that the endpoint keeps to have it cached later; None: the same as other input."""
    output: float = Field(ge=0, allow_inf_nan=False)
    request: float = Field(default=0, ge=0, allow_inf_nan=False)
    """In US dollars for each request, whatever its tokens."""


def _parsed(data: Any) -> Any:
    """Parse JSON here, so that the error names the variable."""
    if not isinstance(data, str):
        return data
    try:
        return read_json(data)
    except KeyTwice:
        raise
    except ValueError:
        raise ValueError('invalid JSON; write {"<model>": {"input": 0.75, "cached": 0.08, "output": 4.5}}') from None


def _payload_place(place: str) -> str:
    """Return where payloads are; an address without a slash at its end."""
    if place in {"files", "database"}:
        return place
    if (found := _BUCKET.fullmatch(place.rstrip("/"))) is None or len(place) > _LONGEST_PLACE:
        raise ValueError("not a place of payloads; write files, database, or s3://BUCKET/PREFIX")
    if found["prefix"] and {"", ".", ".."} & {*found["prefix"].split("/")}:
        raise ValueError("has an empty or a dotted part in its prefix; write s3://BUCKET/PREFIX")
    return place.rstrip("/")


def _web_address(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("not a web address; write http://... or https://...")
    return address


def _server_address(address: str) -> str:
    parts = urlsplit(_web_address(address))
    if "@" in parts.netloc or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("holds more than a server; write http://HOST:PORT or https://HOST")
    return address.rstrip("/")


def plain_address(address: str) -> str:
    """Return the address of a model endpoint, which people are shown; raises ValueError where it is more than that."""
    parts = urlsplit(_web_address(address))
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("holds more than an address; leave out names, passwords and queries, and give a key")
    return address


def key_of(text: str) -> str:
    """Return a key as it is sent in a header; raises ValueError, without quoting it, where no header can hold it."""
    key = text.strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("holds a character that no header can carry; copy the key again, whole")
    return key


def _open_address(address: str) -> str:
    """Return the address for links, without a slash at its end; everybody who may decide sees it."""
    if "@" in urlsplit(_web_address(address)).netloc:
        raise ValueError("holds a name or a password, which people would see in links; leave it out")
    return address.rstrip("/")


def _listening_address(address: str) -> str:
    """Return an address to listen at."""
    host, _, port = address.rpartition(":")
    if not host.strip("[]") or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError("not host:port; write 127.0.0.1:9464, or 0.0.0.0:9464 for all interfaces")
    return address


def _header(name: str) -> str:
    if not name or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise ValueError("not the name of a header; write one such as X-Forwarded-Email")
    return name


def _long_enough(secret: SecretStr | None) -> SecretStr | None:
    if secret is not None and len(secret.get_secret_value()) < _SHORTEST_KEY:
        raise ValueError(f"shorter than {_SHORTEST_KEY} characters, so it could be guessed; make a longer one")
    return secret


def _web_addresses(addresses: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    for address in addresses:
        _web_address(address.get_secret_value())
    return addresses


def found_in(folder: Path, variables: Mapping[str, str]) -> list[str]:
    """Return what would be obeyed in a folder; files that a variable of the process places elsewhere are not."""
    placed = {name.upper() for name, value in variables.items() if value}
    return [
        name
        for name, field in OBEYED.items()
        if os.path.lexists(folder / name) and (field is None or _variable(field) not in placed)
    ]


class Settings(BaseSettings):
    """Hold the settings of an operator; the variable of a field is `BACKSTAY_` and its name in upper case."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore", populate_by_name=True
    )

    home: Path = Path(".backstay")
    """The folder for everything that has no setting of its own."""
    toolbox: Path = Path("toolbox.json")
    """May be missing where no setting names it; then there are no tools."""
    policy: Path = Path("policy.yaml")
    """May be missing; then the default policy applies."""
    profiles: Path = Path("profiles.yaml")
    """May be missing; then there are the built-in profiles."""
    definitions: Path = Path("definitions")
    """A folder of plans; may be missing."""
    models: Path = Path("models.yaml")
    """May be missing where no setting names it; then all models are at the endpoint of OPENAI_BASE_URL."""
    model: str = Field(default="gpt-5.4-mini", min_length=1)
    database_url: Secret = None
    """None: SQLite in `home`."""
    blobs: Path | None = None
    """None: a folder in `home`."""
    payloads: Annotated[str, AfterValidator(_payload_place)] = "files"
    """Where payloads are that are large or that programs use; `database` and `s3://` need no shared folder."""
    s3_endpoint: Annotated[Text, AfterValidator(lambda url: url and _server_address(url))] = None
    """The server of the bucket in `payloads`; None: the one of Amazon in AWS_REGION."""
    aws_secret_access_key: Secret = Field(default=None, validation_alias="AWS_SECRET_ACCESS_KEY")
    aws_session_token: Secret = Field(default=None, validation_alias="AWS_SESSION_TOKEN")
    workspaces: Path | None = None
    """None: a folder in `home`."""
    nsjail: Path | None = None
    """None: searched for on PATH."""
    artifacts_mb: int = Field(default=200, ge=1, le=100_000)
    """How much one call may write to a workspace."""
    shell_root: Path | None = None
    """The root file system in which commands run; None: copies of this machine's tools."""
    image: Literal["python", "data"] = "python"
    """What programs may import: the standard library, or numpy and pandas too."""
    program_memory_mb: int = Field(default=512, ge=64, le=65_536)
    """Memory of one program."""
    program_cpu_seconds: int = Field(default=20, ge=1, le=200)
    """Processor time of one program, over its whole life."""
    program_round_seconds: float = Field(default=30, gt=0, le=200, allow_inf_nan=False)
    """How long a program may compute between two calls."""
    program_rounds: int = Field(default=200, ge=1, le=10_000)
    """How often a program may pause for calls."""
    program_batch_calls: int = Field(default=128, ge=1, le=1024)
    """How many calls a program may make at once."""
    program_frame_bytes: int = Field(default=1 << 20, ge=1 << 10, le=1 << 26)
    """What a program may pass to its calls, or return, at once, as JSON."""
    program_output_bytes: int = Field(default=1 << 20, ge=1 << 10, le=1 << 26)
    """What a program may print."""
    blocked_modules: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)] = (
        *("subprocess", "os.system", "eval", "exec"),
    )
    """What people who are asked about a program are warned of; a comma list of dotted names."""
    program_sample_every: int = Field(default=20, ge=0, le=1_000_000)
    """One program in this number is run again from its journal, to prove that this leads to the same end; 0: none."""
    notify_urls: Annotated[SecretList, AfterValidator(_web_addresses)] = ()
    """Who is told of requests; a comma list. Addresses of this kind often hold a token."""
    trusted: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_listed)] = ()
    """Folders whose files are obeyed without `backstay trust`, for containers; only from the environment."""
    secret_files: Path | None = None
    """A folder with a file for each secret, named as its variable; only from the environment."""
    approver_key: Secret = None
    encryption_keys: SecretList = ()
    """The newest first; a comma list."""
    ledger_key: Secret = None
    """What workers in the runs role sign the heads of the ledger with; nobody else has it."""
    ledger_public_keys: Path | None = None
    """The list of public keys, with their days, that the ledger is verified with."""
    ledger_days: float = Field(default=90, ge=0, le=36_500, allow_inf_nan=False)
    """How long the rows of the ledger are kept after the last one, once their run was pruned."""
    may_act_for: Annotated[tuple[Principal, ...], NoDecode, BeforeValidator(_listed)] = ()
    """The services whose runs use the memory of the user that they name; a comma list."""
    openai_api_key: Annotated[
        Secret, AfterValidator(lambda secret: secret and SecretStr(key_of(secret.get_secret_value())))
    ] = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: Annotated[Text, AfterValidator(lambda url: url and plain_address(url))] = Field(
        default=None, validation_alias="OPENAI_BASE_URL"
    )
    prices: Annotated[dict[str, Price], NoDecode, BeforeValidator(_parsed)] = Field(default_factory=dict)
    """By model; they override the built-in ones."""
    max_completion_tokens: int = Field(default=4096, ge=16, le=1_000_000)
    context_tokens: int = Field(default=60_000, ge=1000, le=10_000_000)
    max_steps_per_plan: int = Field(default=20, ge=1, le=1000)
    """How many steps a plan may have."""
    step_timeout_seconds: float = Field(default=30, gt=0, le=600, allow_inf_nan=False)
    """How long the call of a plan's step may take, where the plan does not say."""
    plans_days: float = Field(default=90, ge=0, le=36_500, allow_inf_nan=False)
    """How long the plans of a run, and who decided what, are kept after it was pruned."""
    digest_characters: int = Field(default=16_384, ge=1000, le=100_000)
    """The most that the model is shown of one answer; all answers of a step together may take three times as much."""
    transient_seconds: float = Field(default=TRANSIENT_S, gt=0, le=86_400, allow_inf_nan=False)
    """How long a transient error is retried before a person is asked."""
    settle_after_seconds: float = Field(default=5, ge=0, le=3600, allow_inf_nan=False)
    """How long after its deadline an effect of unknown outcome is checked."""
    request_deadline_seconds: float = Field(default=30, gt=0, le=600, allow_inf_nan=False)
    server_task_seconds: float = Field(default=FOLLOWED_S, ge=1, le=31_536_000, allow_inf_nan=False)
    """For how long the task is followed by which an MCP server answers a call."""
    system_role: Literal["system", "developer"] = "system"
    webhook_key: Secret = None
    """What notifications are signed with; no receiver may hold the approver key."""
    url: Annotated[Text, AfterValidator(lambda url: url and _open_address(url))] = None
    """Where people find the page of approvals."""
    web_identity: Literal["link", "header", "oidc"] = "link"
    """How the page knows who looks: by a link from this machine, a header of a proxy, or an ID token of a proxy."""
    web_header: Annotated[str, AfterValidator(_header)] = "X-Forwarded-Email"
    """The header in which a proxy says who a person is."""
    web_proxy_secret: Annotated[Secret, AfterValidator(_long_enough)] = None
    """What the proxy of `header` says in X-Backstay-Proxy, so that nobody else is believed."""
    web_starters: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)] = ()
    """Who may start runs on the page and by its API, `*` for everybody; with `link`, everybody who is let in."""
    mcp_trusted: Annotated[tuple[Principal, ...], NoDecode, BeforeValidator(_listed)] = ()
    """Whose words over MCP count as the task's own; what all others say there counts as the words of others."""
    web_secret: Annotated[Secret, AfterValidator(_long_enough)] = None
    """What links and forms of the page are signed with; None: one in `home`, made when it is first needed."""
    oidc_issuer: Annotated[Text, AfterValidator(lambda url: url and _open_address(url))] = None
    """Whose ID tokens the page believes."""
    oidc_audience: Text = None
    """For whom these ID tokens must be made out."""
    oidc_claim: str = Field(default="email", min_length=1, max_length=100)
    """Which claim of an ID token names the person."""
    smtp_url: Secret = None
    """The mail server through which people are told, such as smtp://user:password@host:587."""
    mail_from: Text = None
    mail_to: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)] = ()
    """Who is mailed about what anybody may decide."""
    web_ui_url: Annotated[Text, AfterValidator(lambda url: url and _open_address(url))] = None
    """Where people find Temporal's Web UI."""
    slack_bot_token: Secret = Field(default=None, validation_alias="SLACK_BOT_TOKEN")
    slack_signing_secret: Secret = Field(default=None, validation_alias="SLACK_SIGNING_SECRET")
    """What Slack signs with what it sends over HTTP."""
    slack_app_token: Secret = Field(default=None, validation_alias="SLACK_APP_TOKEN")
    """With it, Slack is listened to over a connection of our own: socket mode."""
    slack_api_url: Annotated[str, AfterValidator(_web_address)] = "https://slack.com/api/"
    slack_channel: Text = None
    """The id of the channel that requests are posted to."""
    slack_users: Path | None = None
    """A file that says who is who: `U123: ana@example.com`; others are known by their verified e-mail address."""
    task_queue: str = Field(default="backstay", min_length=1, max_length=200)
    metrics_address: Annotated[Text, AfterValidator(lambda address: address and _listening_address(address))] = None
    """Where a worker serves metrics for Prometheus, as `host:port`; None: nowhere."""

    _environment: Mapping[str, str] = PrivateAttr(default_factory=lambda: environment(None))
    _withheld_key: bool = PrivateAttr(default=False)

    @classmethod
    def load(cls, env_file: Path | None = ENV_FILE, **overrides: Any) -> Self:
        """Read the environment and the `.env` file; raises SettingsInvalid naming variable, fault and fix.

        Without a file, nothing that is found in the current folder is obeyed that the caller does not name.
        """
        known = environment(None)
        if env_file is not None:
            _require_trust(env_file.parent, overrides, known)
        variables = environment(env_file, known)
        _refuse_unknown(variables)
        sources: dict[str, Any] = {"_env_file": env_file, "_env_file_encoding": "utf-8"}
        sources |= _filed(overrides)
        keys = spellings(KEY, variables)
        if "openai_api_key" not in overrides:
            sources[KEY] = variables[keys[0]] if keys else None
        try:
            settings = cls(**sources, **overrides)
        except ValidationError as error:
            raise SettingsInvalid("; ".join(_explain(fault) for fault in error.errors())) from None
        settings._environment = variables
        settings._withheld_key = not keys and bool(spellings(KEY, known))
        return settings

    @property
    def withheld_key(self) -> bool:
        """Return whether the key of the environment is not used, since the address of the model is a file's."""
        return self._withheld_key

    @property
    def has_endpoint(self) -> bool:
        """Return whether a model can be asked: there is a key, or an endpoint that may need none."""
        return self.openai_api_key is not None or self.openai_base_url is not None

    @property
    def names_toolbox(self) -> bool:
        """Return whether the operator said where the toolbox is, so that it must be there."""
        return "toolbox" in self.model_fields_set

    def claim_home(self) -> None:
        """Trust the home in the current folder if this process is about to make it."""
        default, variables = type(self).model_fields["home"].default, environment(None)
        if self.home == default and not os.path.lexists(default) and not is_trusted(Path(), variables):
            with suppress(SettingsInvalid):
                trust(default, variables)

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the variables that `${NAME}` in the operator's files may name."""
        return self._environment

    @property
    def database_url_text(self) -> str | None:
        """Return the address of the database with its password, for the one place that connects."""
        return None if self.database_url is None else self.database_url.get_secret_value()

    @property
    def has_store(self) -> bool:
        """Return whether there is a store to read; what only looks must not create one."""
        return self.database_url is not None or (self.home / "backstay.db").exists()

    @property
    def approver_key_bytes(self) -> bytes | None:
        """Return the key that proofs are signed with."""
        return None if self.approver_key is None else self.approver_key.get_secret_value().encode()

    @property
    def wants_traces(self) -> bool:
        """Return whether OpenTelemetry's own variables ask for traces.

        Raises SettingsInvalid for an exporter or a protocol that backstay does not bring.
        """
        said = {name: self._environment.get(name, "").strip() for name in (*_ENDPOINTS, *_EXPORTERS, _SDK_DISABLED)}
        if said[_SDK_DISABLED].lower() == "true" or not any(said[name] for name in _ENDPOINTS):
            return False
        for name, known in _EXPORTERS.items():
            if said[name] == "none":
                return False
            if said[name] and said[name] != known:
                raise SettingsInvalid(
                    f"{name}: {one_line(said[name], 80)!r} is not supported; set it to {known}, or unset it"
                )
        return True

    def share(self, prefix: str) -> None:
        """Give libraries that read the environment themselves what the `.env` file says under this prefix."""
        for name, value in self._environment.items():
            if name.startswith(prefix):
                os.environ.setdefault(name, value)  # noqa: TID251 - the one place where it is changed

    def secrets(self) -> frozenset[str]:
        """Return every secret value that is long enough to be looked for in payloads."""
        # The address of a server is not a secret, but the password in it is.
        fields = (value for name, value in self if name not in {"database_url", "smtp_url"})
        single = (each for value in fields for each in (value if isinstance(value, tuple) else (value,)))
        held = [each.get_secret_value() for each in single if isinstance(each, SecretStr)]
        addresses = (self.database_url, self.smtp_url, *self.notify_urls)
        texts = (address.get_secret_value() for address in addresses if address is not None)
        held += [secret for text in texts for secret in secrets_of_address(text)]
        held += secrets_of_variables(self._environment)
        return frozenset(secret for secret in held if len(secret.encode("utf-8", "surrogatepass")) >= _SHORTEST_SECRET)


def _require_trust(folder: Path, overrides: Mapping[str, Any], variables: Mapping[str, str]) -> None:
    """Raise SettingsInvalid when files would be obeyed that the user has not trusted."""
    found = [name for name in found_in(folder, variables) if OBEYED[name] not in overrides]
    if found == [".backstay"] and is_trusted(folder / ".backstay", variables):
        return
    named = os.path.realpath(folder) in map(os.path.realpath, overrides.get("trusted", ()))
    if found and not named and not is_trusted(folder, variables):
        real, verb = folder.absolute(), "is" if len(found) == 1 else "are"
        raise SettingsInvalid(
            f"{one_line(str(real), 500)}: not trusted, so {', '.join(found)} in it {verb} not obeyed; "
            f"look at what is there, then run: backstay trust {shell_words(str(real))}"
        )


def _filed(overrides: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that are in secret files, and neither in the process nor in the overrides."""
    held = secret_files()
    if not held:
        return {}
    process = process_environment()
    fields = {_variable(name): name for name in Settings.model_fields if name not in overrides}
    found = {
        name: value for name, value in held.items() if name.upper() in fields and not spellings(name.upper(), process)
    }
    # A field with a name of its own outside is known by that.
    return {
        name.upper() if not name.upper().startswith(PREFIX) else fields[name.upper()]: value
        for name, value in found.items()
    }


def _refuse_unknown(variables: Mapping[str, str]) -> None:
    known = [_variable(name) for name in Settings.model_fields]
    for name in sorted(variables):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            nearest = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0)
            raise SettingsInvalid(f"{name}: unknown setting; did you mean {nearest[0]}? Otherwise remove it")


def _variable(field: str) -> str:
    alias = Settings.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else PREFIX + field.upper()


def _explain(fault: Any) -> str:
    name = str(fault["loc"][0]) if fault["loc"] else "settings"
    field = next((f for f in Settings.model_fields if name in (f, _variable(f))), None)
    variable = _variable(field) if field else name
    inner = ".".join(str(part) for part in fault["loc"][1:])
    said = fault["msg"].removeprefix("Value error, ")
    is_secret = field is None or "Secret" in str(Settings.model_fields[field].annotation)
    given = fault.get("input")
    # An address may hold a password, or a key in its query.
    is_secret = is_secret or (isinstance(given, str) and "://" in given and bool({"@", "?"} & {*given}))
    # A fault of the whole model could carry every value: only that of a plain field is repeated.
    value = "" if is_secret else f" (value {quoted(given)})"
    return f"{variable}{'.' + inner if inner else ''}: {said}{value}"
