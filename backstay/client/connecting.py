"""Connect to Temporal with its own settings."""

import asyncio
import contextlib
import ipaddress
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from temporalio.api.common.v1 import Payload
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.contrib.pydantic import PydanticPayloadConverter, ToJsonOptions, pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.runtime import Runtime
from temporalio.service import GrpcCompression, RPCError, RPCStatusCode

from backstay.client.failures import error_from_rpc
from backstay.errors import BackstayError, SettingsInvalid, Unreachable
from backstay.settings import Settings
from backstay.shown import one_line
from backstay.variables import process_environment

if TYPE_CHECKING:
    from backstay.client.backstay import Backstay
    from backstay.client.exporting import Exporting

_TRACES = "opentelemetry.sdk.trace"
_ELSEWHERE = ("TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")
"""What may name another server. Temporal's own settings read it, as the next ones, from the environment alone."""
_PROTECTING = ("TEMPORAL_API_KEY", "TEMPORAL_TLS", "TEMPORAL_GRPC_META_")
ADDRESS = "localhost:7233"
START = "start one with `backstay dev`, or set TEMPORAL_ADDRESS"
TIMEOUT_S = 3.0
CLOSING_S = 0.05


class Unreadable:
    """Stand for input that is not JSON, so that it can be refused like any other bad input."""

    def __repr__(self) -> str:
        return "what is not JSON"


class _CompactConverter(PydanticPayloadConverter):
    def __init__(self) -> None:
        super().__init__(ToJsonOptions(exclude_unset=True))

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        if any(hint is not Any for hint in type_hints or ()):
            return super().from_payloads(payloads, type_hints)
        # Untyped input comes from outside: bad input must not fail the workflow task, which would be retried forever.
        return [self._read(payload) for payload in payloads]

    def _read(self, payload: Payload) -> Any:
        try:
            return super().from_payloads([payload], None)[0]
        except Exception:  # each encoding has errors of its own, and some clients encrypt
            return Unreadable()


DATA_CONVERTER = replace(pydantic_data_converter, payload_converter_class=_CompactConverter)
"""The converter of every client, worker and replayer; fields left at their default do not reach history."""


@contextlib.asynccontextmanager
async def connect(
    address: str | None = None,
    *,
    namespace: str | None = None,
    client: Client | None = None,
    task_queue: str = "backstay",
    approver_key: str | None = None,
    page: str | None = None,
    runtime: Runtime | None = None,
) -> "AsyncGenerator[Backstay]":
    """Connect with Temporal's own settings (`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, profiles), or use a client.

    With `approver_key`, decisions made through this connection are signed with it. `page` is the address of the
    page of approvals, to which the Web UI then leads from the start of a run on. `runtime` is that of Temporal's SDK.
    In a program that traces with OpenTelemetry, the runs that it starts join its traces.
    Raises Unreachable when nothing answers at the address, SettingsInvalid when the namespace does not exist or the
    settings cannot be read.
    """
    from backstay.client.backstay import Backstay  # noqa: PLC0415 - with all that a run is made of

    own = connected(address, namespace=namespace, runtime=runtime) if client is None else contextlib.nullcontext(client)
    async with own as used:
        yield Backstay(used, task_queue=task_queue, approver_key=approver_key, page=page)


@contextlib.asynccontextmanager
async def connected(
    address: str | None = None, *, namespace: str | None = None, runtime: Runtime | None = None
) -> AsyncGenerator[Client]:
    """Connect as `connect` does, for one who only asks what Temporal itself knows."""
    yield await reach(_options(address, namespace) | ({} if runtime is None else {"runtime": runtime}))
    # Temporal's own threads hold the last answer for a moment; a process that ends while they do aborts.
    await asyncio.sleep(CLOSING_S)


async def reach(options: dict[str, Any]) -> Client:
    """Return a client for a namespace that answers; raises Unreachable or SettingsInvalid within seconds."""
    where = one_line(str(options["target_host"]), 200)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await _probe(options)
            client = await Client.connect(
                **options,
                data_converter=DATA_CONVERTER,
                interceptors=interceptors(),
                grpc_compression=compression(str(options["target_host"])),
            )
            await client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=client.namespace), timeout=timedelta(seconds=TIMEOUT_S)
            )
    except RPCError as error:
        raise _refused(error, where, str(options.get("namespace", "default"))) from None
    except (TimeoutError, RuntimeError, OSError, ValueError):
        raise Unreachable(f"Temporal cannot be reached at {where}; {START}") from None
    return client


@contextlib.contextmanager
def traced(settings: Settings) -> "Generator[Exporting | None]":
    """Send traces for as long as the block runs, where OpenTelemetry's own variables ask for them.

    Raises SettingsInvalid when what is needed for it is not installed.
    """
    if not settings.wants_traces:
        yield None
        return
    try:
        from backstay.client.exporting import open_exporting  # noqa: PLC0415 - of an extra, and slow to load
    except ImportError as error:
        raise SettingsInvalid(
            f"OTEL_EXPORTER_OTLP_ENDPOINT: set, but {error.name or 'OpenTelemetry'} is not installed; "
            "run pip install 'backstay[otel]', or unset it"
        ) from None
    with open_exporting(settings) as exporting:
        yield exporting


def interceptors() -> list[ClientInterceptor]:
    """Return what makes runs a part of this program's traces, if it makes any."""
    if _TRACES not in sys.modules:
        return []
    from backstay.client.tracing import ClientTracing  # noqa: PLC0415 - only programs that trace pay for it

    return [ClientTracing()]


async def _probe(options: dict[str, Any]) -> None:
    """Find out at once whether anything listens, so that no client has to be given up halfway."""
    if options.get("http_connect_proxy_config") is not None:
        return
    host, _, port = str(options["target_host"]).rpartition(":")
    _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    writer.close()


def compression(address: str) -> GrpcCompression:
    """Return how messages to a server are compressed: not at all on this machine, where that only costs time."""
    return GrpcCompression.NONE if _is_near(address) else GrpcCompression.GZIP


def _is_near(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def place_in_file(settings: Settings, otherwise: str = ADDRESS) -> dict[str, str]:
    """Return the address and namespace that the `.env` file gives, where Temporal's own settings name none.

    `otherwise` is the address that is used where neither names one. Raises SettingsInvalid where a file gives what
    protects the connection, since it is not read there.
    """
    own, known = _own_settings(), settings.environment
    named = str(own.get("target_host") or known.get("TEMPORAL_ADDRESS") or "")
    if not named:
        _refuse_filed(known, _ELSEWHERE)
    # A server on this machine, such as that of `dev`, needs none of it.
    if not _is_near(named or otherwise):
        _refuse_filed(known, (*_ELSEWHERE, *_PROTECTING))
    variables = {"address": ("target_host", "TEMPORAL_ADDRESS"), "namespace": ("namespace", "TEMPORAL_NAMESPACE")}
    return {
        name: known[variable]
        for name, (option, variable) in variables.items()
        if known.get(variable) and option not in own
    }


def _refuse_filed(known: Mapping[str, str], beginnings: tuple[str, ...]) -> None:
    process = process_environment()
    for name in sorted(known.keys() - process.keys()):
        if known[name] and name.startswith(beginnings):
            raise SettingsInvalid(
                f"{name}: is in a file, .env or one of BACKSTAY_SECRET_FILES, where it would not be obeyed; set it in "
                "the environment, or remove it there"
            )


def is_place_named() -> bool:
    """Return whether Temporal's own settings say where it is."""
    return "target_host" in _own_settings()


def _own_settings() -> dict[str, Any]:
    try:
        return dict(ClientConfig.load_client_connect_config())
    except (RuntimeError, ValueError, OSError) as error:
        raise SettingsInvalid(f"Temporal's own settings cannot be read: {one_line(str(error), 300)}") from None


def _options(address: str | None, namespace: str | None) -> dict[str, Any]:
    options = _own_settings()
    options.setdefault("target_host", ADDRESS)
    given = {"target_host": address, "namespace": namespace}
    return options | {name: value for name, value in given.items() if value is not None}


def _refused(error: RPCError, where: str, namespace: str) -> BackstayError:
    if error.status is RPCStatusCode.NOT_FOUND:
        return SettingsInvalid(
            f"TEMPORAL_NAMESPACE: Temporal at {where} has no namespace {one_line(namespace, 200)!r}; "
            "name one that exists, or start a server with `backstay dev`"
        )
    if error.status in {RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED}:
        return error_from_rpc(error, "")
    return Unreachable(f"Temporal at {where} does not answer ({one_line(error.message, 200)}); {START}")
