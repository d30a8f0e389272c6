"""Serve runs beside the workflows of a service, through Temporal's plugin interface."""

import asyncio
import logging
import os
import signal
import uuid
from contextlib import suppress
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


@pytest_asyncio.fixture
async def mail_at(tmp_path):
    async with open_mailbox(tmp_path / "mailbox.db", Faults()) as address:
        yield address


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


@promise("clients:plugin")
async def test_a_services_own_worker_serves_runs_too_and_starts_the_engine_again_when_it_dies(
    temporal, mail_at, tmp_path, caplog
):
    queue, own = f"runs-{uuid.uuid4()}", f"orders-{uuid.uuid4()}"
    caplog.set_level(logging.INFO, "backstay.worker")
    # As a service connects that knows nothing of backstay: with Temporal's usual converter.
    address = temporal.service_client.config.target_host
    client = await Client.connect(address, plugins=[plugin_at(tmp_path, queue, mail_at)])

    async def outcome(order):
        result = await client.execute_workflow(Order.run, args=[order, queue], id=order, task_queue=own)
        return result["outcome"]

    async with own_worker(client, own), own_worker(client, f"{own}-other"):
        assert await outcome(f"first-{own}") == "completed"
        (engine,) = engines(tmp_path)
        os.kill(engine, signal.SIGKILL)
        assert await outcome(f"second-{own}") == "completed"
        assert engines(tmp_path) != [engine]

    assert engines(tmp_path) == []
    assert Mailbox(tmp_path / "mailbox.db").sent() == [f"first-{own}@example.com", f"second-{own}@example.com"]
    said = [record.getMessage() for record in caplog.records if record.name == "backstay.worker"]
    assert any(line.startswith("backstay worker ready:") for line in said)
    assert any(line.startswith("the engine was lost:") for line in said)


@promise("clients:plugin-refused")
async def test_an_engine_that_cannot_start_or_has_the_queue_of_the_worker_ends_the_worker_with_the_reason(
    temporal, mail_at, tmp_path
):
    async def run(queue, **more):
        given = plugin_at(tmp_path, "runs-of-plugin", mail_at, **more)
        async with asyncio.timeout(150):
            client = await Client.connect(temporal.service_client.config.target_host, plugins=[given])
            await own_worker(client, queue).run()

    with pytest.raises(SettingsInvalid, match="BACKSTAY_HOMME"):
        await run("own-queue", BACKSTAY_HOMME="x")
    with pytest.raises(SettingsInvalid, match="task_queue: 'runs-of-plugin' is the queue of runs; give your worker"):
        await run("runs-of-plugin")
    assert engines(tmp_path) == []


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
