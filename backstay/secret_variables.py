"""Find the secrets in addresses, and in the variables that libraries read by themselves."""

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

_VARIABLES = frozenset({"PGPASSWORD", "TEMPORAL_API_KEY", "TEMPORAL_CODEC_AUTH", "TEMPORAL_TLS_CLIENT_KEY_DATA"})
_METADATA = "TEMPORAL_GRPC_META_"
_TELLING = ("AUTH", "KEY", "TOKEN", "SECRET", "PASSWORD")
"""In the name of a header that holds a secret; others name a namespace, for example."""
_HEADERS = frozenset({"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"})
"""Collectors of traces are often told a token so."""
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
_FIELDS = frozenset({"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"})
"""Fields of the query in the address of a PostgreSQL database."""


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


def secrets_of_headers(headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets in headers."""
    for name, value in headers.items():
        if any(word in name.upper() for word in _TELLING):
            yield from value.split()


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
        elif name in _VARIABLES:
            yield value.strip()
