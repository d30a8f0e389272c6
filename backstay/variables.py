"""Read the variables of the process, of its `.env` file and of its secret files; no other module reads them."""

import os
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from dotenv import dotenv_values
from dotenv.parser import Binding, parse_stream

from backstay.errors import SettingsInvalid
from backstay.shown import one_line

PREFIX = "BACKSTAY_"
ENV_FILE = Path(".env")
KEY = "OPENAI_API_KEY"
_BASE_URL = "OPENAI_BASE_URL"
_SECRET_FILES = f"{PREFIX}SECRET_FILES"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRETS = frozenset({"PGPASSWORD", "TEMPORAL_API_KEY", "TEMPORAL_CODEC_AUTH", "TEMPORAL_TLS_CLIENT_KEY_DATA"})
_METADATA = "TEMPORAL_GRPC_META_"
_TELLING = ("AUTH", "KEY", "TOKEN", "SECRET", "PASSWORD")
"""In the name of a header that holds a secret; others name a namespace, for example."""
_HEADERS = frozenset({"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"})
"""Collectors of traces are often told a token so."""
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
_FIELDS = frozenset({"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})
"""Fields of the query in the address of a PostgreSQL database."""


def environment(env_file: Path | None = ENV_FILE, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of the `.env` file, of the secret files and of the process; later ones win.

    The key of the process is not among them where the address it would be sent to is that of the `.env` file.
    `known`: what this returned without a file, so that it is not read again.
    """
    process = secret_files() | process_environment() if known is None else dict(known)
    filed = {} if env_file is None else _filed(env_file)
    merged = {name: value for name, value in filed.items() if value is not None} | process
    if spellings(_BASE_URL, filed) and not spellings(_BASE_URL, process):
        for name in spellings(KEY, process):
            del merged[name]
            if filed.get(name) is not None:
                merged[name] = str(filed[name])
    return merged


def _filed(env_file: Path) -> dict[str, str | None]:
    try:
        text = env_file.read_text(encoding="utf-8") if env_file.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(
            f"{env_file}: cannot be read ({error}); save it as UTF-8, readable for the user of this process"
        ) from None
    for binding in parse_stream(StringIO(text)):
        # A name alone may be the rest of a value that was wrapped.
        if binding.error or (binding.key and binding.value is None and not _is_exported(binding)):
            # The value may be a secret.
            raise SettingsInvalid(
                f"{env_file}: line {_line_of(binding)}: not a variable; write NAME=value, and a quotation mark at both "
                "ends of the value or at neither"
            )
    return dotenv_values(stream=StringIO(text))


def _is_exported(binding: Binding) -> bool:
    return binding.original.string.split()[0] == "export"


def _line_of(binding: Binding) -> int:
    """Return the line on which a binding begins; blank lines before it belong to it."""
    text = binding.original.string
    return binding.original.line + text[: len(text) - len(text.lstrip())].count("\n")


def process_environment() -> dict[str, str]:
    """Return the variables of the process alone, for what it becomes or starts in its own place."""
    return dict(os.environ)  # noqa: TID251 - the one place


def secret_files() -> dict[str, str]:
    """Return what the files hold that are named as variables, without the line break at their ends.

    Empty files count as missing, as empty variables do. Raises SettingsInvalid.
    """
    named = process_environment().get(_SECRET_FILES)
    if not named:
        return {}
    try:
        held = {path.name: path.read_text(encoding="utf-8").rstrip("\r\n") for path in _held_in(Path(named))}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(
            f"{_SECRET_FILES}: {one_line(named, 200)}: cannot be read ({error}); name a folder with a text file for "
            "each secret, which the user of this process may read"
        ) from None
    return {name: value for name, value in held.items() if value.strip()}


def variable_files() -> list[Path]:
    """Return the files that give variables: `.env`, which may be missing, and the secret files."""
    named = process_environment().get(_SECRET_FILES)
    return [ENV_FILE, *(_held_in(Path(named)) if named and Path(named).is_dir() else ())]


def _held_in(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if _VARIABLE.fullmatch(path.name) and path.is_file()]


def spellings(variable: str, variables: Mapping[str, str | None]) -> list[str]:
    """Return the spellings under which a variable is set; settings are read in any case."""
    return [name for name, value in variables.items() if name.upper() == variable and value]


def secrets_of_address(address: str) -> Iterator[str]:
    """Yield the password of an address, and what else is secret in it; the address itself is none."""
    try:
        parts = urlsplit(address)
        yield unquote(parts.password or "")
    except ValueError:
        return
    for name, value in parse_qsl(parts.query):
        if name.lower() in _FIELDS:
            yield value
            # A plus stands for itself where libraries do not read it as a blank.
            yield value.replace(" ", "+")


def secrets_of_headers(headers: Mapping[str, str | bytes]) -> Iterator[str]:
    """Yield the secrets in headers, each without its scheme."""
    for name, value in headers.items():
        if isinstance(value, str) and any(word in name.upper() for word in _TELLING):
            yield value.split()[-1] if value.strip() else ""


def secrets_of_variables(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets in variables that are not settings of backstay."""
    for variable, value in variables.items():
        name = variable.upper()
        if name in _HEADERS:
            yield from (part for pair in value.split(",") for part in unquote(pair.partition("=")[2]).split())
        elif name.startswith(_METADATA):
            yield from secrets_of_headers({name: value})
        elif name in _PROXIES:
            yield from secrets_of_address(value)
        elif name in _SECRETS:
            yield value.strip()
