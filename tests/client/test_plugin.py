"""Serve runs beside the workflows of a service, through Temporal's plugin interface."""

import asyncio
import logging
import os
import signal
import uuid
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.service import TLSConfig

from backstay import BackstayPlugin
from backstay.client.plugin import place_of
from backstay.errors import SettingsInvalid
from examples.mailbox.faults import Faults
from examples.orders.orders import Order, own_worker
from tests.cli.commands import bare
from tests.engine import Mailbox, share_images, toolbox_of
from tests.mailbox_server import open_mailbox
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"


class Shop:
    """A service whose worker serves runs, too, until `closes`."""

    def __init__(self, folder, mail_at, address):
        self.folder, self.mail_at, self.address = folder, mail_at, address
        self.runs, self.own = f"runs-{uuid.uuid4()}", f"orders-{uuid.uuid4()}"
        self.stack = AsyncExitStack()

    async def opens(self):
        # As a service connects that knows nothing of backstay: with Temporal's usual converter.
        given = plugin_at(self.folder, self.runs, self.mail_at)
        self.client = await Client.connect(self.address, plugins=[given])
        for queue in (self.own, f"{self.own}-other"):
            await self.stack.enter_async_context(own_worker(self.client, queue))

    async def closes(self):
        await self.stack.aclose()


@pytest_asyncio.fixture(scope="module")
async def shop(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    async with open_mailbox(folder / "mailbox.db", Faults()) as address:
        shop = Shop(folder, address, temporal.service_client.config.target_host)
        await shop.opens()
        yield shop
        await shop.closes()


def plugin_at(folder, queue, mail_at, **more):
    (folder / "policy.yaml").write_text(POLICY)
    variables = {
        "BACKSTAY_HOME": str(share_images(folder / "home")),
        "BACKSTAY_TOOLBOX": str(toolbox_of(folder, folder / "mailbox.db", address=mail_at)),
        "BACKSTAY_POLICY": str(folder / "policy.yaml"),
        "BACKSTAY_TRUSTED": str(folder),
        "BACKSTAY_TASK_QUEUE": queue,
        **bare(),
        **more,
    }
    return BackstayPlugin(folder=folder, environment=variables, ready_within_s=150)


def engines(folder):
    """Return the processes of workers that have their home in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (process / "cmdline").read_bytes().split(b"\0")
            environment = (process / "environ").read_bytes()
            if (
                str(folder / "home").encode() in environment
                and b"sandbox" not in line
                and any(part.endswith(b"/worker.py") for part in line)
            ):
                found.append(int(process.name))
    return found


async def run(shop, queue, **more):
    """Have a service run one worker until that ends."""
    given = plugin_at(shop.folder, "runs-of-plugin", shop.mail_at, **more)
    async with asyncio.timeout(150):
        client = await Client.connect(shop.address, plugins=[given])
        await own_worker(client, queue).run()


@promise("clients:plugin-refused")
async def test_an_engine_that_cannot_start_or_has_the_queue_of_the_worker_ends_the_worker_with_the_reason(shop):
    async with asyncio.timeout(150):
        while not (before := engines(shop.folder)):
            await asyncio.sleep(0.05)
    with pytest.raises(SettingsInvalid, match="BACKSTAY_HOMME"):
        await run(shop, "own-queue", BACKSTAY_HOMME="x")
    with pytest.raises(SettingsInvalid, match=f"task_queue: '{shop.runs}' is the queue of runs; give your worker"):
        async with asyncio.timeout(150):
            await own_worker(shop.client, shop.runs).run()
    # The other workers of the service need theirs.
    assert engines(shop.folder) == before


@promise("clients:plugin")
async def test_a_services_own_worker_serves_runs_too_and_starts_the_engine_again_when_it_dies(shop, caplog):
    caplog.set_level(logging.INFO, "backstay.worker")

    async def outcome(order):
        given = {"args": [order, shop.runs], "id": order, "task_queue": shop.own}
        return (await shop.client.execute_workflow(Order.run, **given))["outcome"]

    assert await outcome(f"first-{shop.own}") == "completed"
    (engine,) = engines(shop.folder)
    os.kill(engine, signal.SIGKILL)
    assert await outcome(f"second-{shop.own}") == "completed"
    assert engines(shop.folder) != [engine]
    await shop.closes()

    assert engines(shop.folder) == []
    sent = [f"{each}-{shop.own}@example.com" for each in ("first", "second")]
    assert Mailbox(shop.folder / "mailbox.db").sent() == sent
    said = [record.getMessage() for record in caplog.records if record.name == "backstay.worker"]
    assert any(line.startswith("backstay worker ready:") for line in said)
    assert any(line.startswith("the engine was lost:") for line in said)


@promise("clients:plugin-refused")
@pytest.mark.thorough
async def test_the_engine_of_a_worker_that_is_refused_ends_with_it(shop):
    await shop.closes()
    with pytest.raises(SettingsInvalid, match="task_queue: 'runs-of-plugin' is the queue of runs; give your worker"):
        await run(shop, "runs-of-plugin")
    assert engines(shop.folder) == []


@promise("clients:plugin-place")
def test_the_engine_is_led_to_where_the_client_is_connected_with_its_certificates(temporal):
    config = temporal.service_client.config
    assert place_of(temporal) == {"TEMPORAL_ADDRESS": config.target_host, "TEMPORAL_NAMESPACE": "default"}

    class Secured:
        namespace = "billing"

        class service_client:  # noqa: N801 - named as the client's
            class config:  # noqa: N801 - the same
                target_host, api_key = "temporal.example:7233", "key"
                tls = TLSConfig(
                    server_root_ca_cert=b"ca", domain="name", client_cert=b"cert", client_private_key=b"own"
                )

    assert place_of(Secured) == {
        "TEMPORAL_ADDRESS": "temporal.example:7233",
        "TEMPORAL_NAMESPACE": "billing",
        "TEMPORAL_API_KEY": "key",
        "TEMPORAL_TLS": "true",
        "TEMPORAL_TLS_SERVER_CA_CERT_DATA": "ca",
        "TEMPORAL_TLS_CLIENT_CERT_DATA": "cert",
        "TEMPORAL_TLS_CLIENT_KEY_DATA": "own",
        "TEMPORAL_TLS_SERVER_NAME": "name",
    }
