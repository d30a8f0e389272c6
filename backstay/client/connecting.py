"""Connect to Temporal with its own settings."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode

from backstay.calls import DATA_CONVERTER
from backstay.client.backstay import Backstay
from backstay.client.failures import error_from_rpc
from backstay.errors import BackstayError, SettingsInvalid, Unreachable
from backstay.shown import one_line

ADDRESS = "localhost:7233"
START = "start one with `backstay dev`, or set TEMPORAL_ADDRESS"
TIMEOUT_S = 3.0
CLOSING_S = 0.05


@asynccontextmanager
async def connect(
    address: str | None = None,
    *,
    namespace: str | None = None,
    client: Client | None = None,
    task_queue: str = "backstay",
    approver_key: str | None = None,
    page: str | None = None,
) -> AsyncGenerator[Backstay]:
    """Connect with Temporal's own settings (`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, profiles), or use a client.

    With `approver_key`, decisions made through this connection are signed with it. `page` is the address of the page
    of approvals, to which the Web UI then links from the start of a run on. Raises Unreachable when nothing
    answers at the address, SettingsInvalid when the namespace does not exist or the settings cannot be read.
    """
    used = client or await reach(_options(address, namespace))
    yield Backstay(used, task_queue=task_queue, approver_key=approver_key, page=page)
    if client is None:
        # Temporal's own threads hold the last answer for a moment; a process that ends while they do aborts.
        await asyncio.sleep(CLOSING_S)


async def reach(options: dict[str, Any]) -> Client:
    """Return a client for a namespace that answers; raises Unreachable or SettingsInvalid within seconds."""
    where = one_line(str(options["target_host"]), 200)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await _probe(options)
            client = await Client.connect(**options, data_converter=DATA_CONVERTER)
            await client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=client.namespace), timeout=timedelta(seconds=TIMEOUT_S)
            )
    except RPCError as error:
        raise _refused(error, where, str(options.get("namespace", "default"))) from None
    except (TimeoutError, RuntimeError, OSError, ValueError):
        raise Unreachable(f"Temporal cannot be reached at {where}; {START}") from None
    return client


async def _probe(options: dict[str, Any]) -> None:
    """Find out at once whether anything listens, so that no client has to be given up halfway."""
    if options.get("http_connect_proxy_config") is not None:
        return
    host, _, port = str(options["target_host"]).rpartition(":")
    _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    writer.close()


def _options(address: str | None, namespace: str | None) -> dict[str, Any]:
    try:
        options: dict[str, Any] = dict(ClientConfig.load_client_connect_config())
    except (RuntimeError, ValueError, OSError) as error:
        raise SettingsInvalid(f"Temporal's own settings cannot be read: {one_line(str(error), 300)}") from None
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
