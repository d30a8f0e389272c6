"""A worker that does not fit its store takes no work and says what differs; a worker that fits is not disturbed."""

import asyncio
import shutil
import signal
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.client import Client

import opening
from backstay.client.workers import pollers
from backstay.settings import Settings
from backstay.testing import Reply, ScriptedModel
from examples.mailbox.faults import Faults
from gateways.terminal.listing import _mark_pruned
from gateways.terminal.session import undone_since
from store.opening import open_store
from tests.engine import PRICES, Mailbox, Scripts, share_images, toolbox_of
from tests.mailbox_server import open_mailbox
from tests.nursery.nursery import OPERATORS_WORKER, Child, Nursery, plain_environment
from tests.requirements import promise
from tests.sizes import spread

KEY, OTHER = ("0" * 43 + "=", "1" * 42 + "0=")
APPROVER = "an approver key of this test"
POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\n"


@dataclass
class Site:
    """A worker that fits, in a process of its own."""

    folder: Path
    client: Client
    nursery: Nursery
    scripts: Scripts
    environment: dict[str, str]
    fit: Child

    async def worker(self, *arguments: str, without: tuple[str, ...] = (), **changed: str) -> Child:
        variables = {name: value for name, value in self.environment.items() if name not in without} | changed
        log = self.folder / f"{uuid.uuid4().hex}.log"
        return await self.nursery.raised(
            OPERATORS_WORKER, *arguments, environment=variables, log=log, folder=self.folder
        )

    def home(self, name: str) -> str:
        return str(share_images(self.folder / name))


@pytest_asyncio.fixture(scope="module")
async def site(temporal, nursery, tmp_path_factory):
    folder = tmp_path_factory.mktemp("misfits")
    (folder / "policy.yaml").write_text(POLICY)
    scripts = Scripts()
    async with ScriptedModel(scripts) as model, open_mailbox(folder / "mailbox.db", Faults()) as address:
        environment = plain_environment() | {
            "TEMPORAL_ADDRESS": temporal.service_client.config.target_host,
            "BACKSTAY_HOME": str(share_images(folder / "home")),
            "BACKSTAY_TOOLBOX": str(toolbox_of(folder, folder / "mailbox.db", address=address)),
            "BACKSTAY_POLICY": str(folder / "policy.yaml"),
            "BACKSTAY_TASK_QUEUE": f"queue-{uuid.uuid4()}",
            "BACKSTAY_ENCRYPTION_KEYS": KEY,
            "BACKSTAY_APPROVER_KEY": APPROVER,
            "BACKSTAY_MODEL": "scripted",
            "BACKSTAY_PRICES": str(PRICES).replace("'", '"'),
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "test-key-of-the-scripted-model",
        }
        opened = Site(folder, temporal, nursery, scripts, environment, None)
        opened.fit = await opened.worker("--role", "runs")
        await opened.fit.ready()
        yield opened
        await opened.fit.end()


@asynccontextmanager
async def undisturbed(site: Site):
    """Have a run of the fit worker wait for a person while something happens, then go on and be undone."""
    mail = {"to": f"{uuid.uuid4().hex}@fit.example", "subject": "s", "body": "b"}
    replies = (
        Reply(calls=[("mail__send_email", mail)]),
        Reply(calls=[("finish", {"summary": "no", "outputs": {}, "success": False})]),
    )
    queue = site.environment["BACKSTAY_TASK_QUEUE"]
    run = await site.client.start_workflow(
        "RunTask", site.scripts.task(*replies), id=f"task-{uuid.uuid4()}", task_queue=queue
    )
    async with asyncio.timeout(150):
        while not (found := await run.query("pending")):
            await asyncio.sleep(0.1)
    yield
    await run.execute_update("decide", {"request_id": found[0]["id"], "verdict": "approve", "by": "ana"})
    result = await asyncio.wait_for(run.result(), 150)
    assert result["outcome"] == "rolled_back"
    mailbox = Mailbox(site.folder / "mailbox.db")
    assert mailbox.rows("SELECT recalled_at IS NOT NULL FROM sent WHERE recipient = ?", mail["to"]) == [(1,)]


async def blobs_of_another_store(site: Site) -> str:
    folder = site.folder / "another"
    async with open_store(database_url=None, home=folder) as store:
        await store.fitness.adopt(opening.belongings_of(Settings.load(None, home=folder)))
    return str(folder / "blobs")


async def refused(site: Site, *arguments: str, without: tuple[str, ...] = (), **changed: str) -> str:
    """Return what a worker that must not take any work says; it ends by itself."""
    misfit = await site.worker(*arguments, without=without, **changed)
    assert await misfit.ended(60) == 2, misfit.said()
    queue = site.environment["BACKSTAY_TASK_QUEUE"]
    names = [
        *await pollers(site.client, queue),
        *await pollers(site.client, f"{queue}-sandbox", TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY),
    ]
    assert {name.partition("@")[0] for name in names} == {str(site.fit.born.result())}
    assert "ready" not in misfit.said()
    return misfit.said()


@promise("workers:misfit")
@pytest.mark.parametrize("role", spread(["runs", "all"], 1))
@pytest.mark.parametrize(
    ("without", "changed", "names"),
    spread(
        [
            ((), {"BACKSTAY_ENCRYPTION_KEYS": OTHER}, "BACKSTAY_ENCRYPTION_KEYS: this worker has key"),
            (("BACKSTAY_ENCRYPTION_KEYS",), {}, "BACKSTAY_ENCRYPTION_KEYS: this worker has no key"),
            ((), {"BACKSTAY_APPROVER_KEY": "another key"}, "BACKSTAY_APPROVER_KEY: this worker has key"),
            (("BACKSTAY_APPROVER_KEY",), {}, "BACKSTAY_APPROVER_KEY: this worker has no key"),
            ((), {"BACKSTAY_BLOBS": "empty"}, "BACKSTAY_BLOBS: empty is not the folder"),
        ],
        2,
    ),
)
async def test_a_worker_with_other_keys_or_another_folder_takes_no_work(site, role, without, changed, names):
    async with undisturbed(site):
        said = await refused(site, "--role", role, without=without, **changed)
    assert "does not fit store" in said
    assert names in said
    assert "backstay store adopt-settings" in said
    assert [key for key in (KEY, OTHER, APPROVER) if key in said] == []


@promise("workers:misfit-payloads")
@pytest.mark.parametrize("role", ["runs", "sandbox"])
async def test_a_worker_with_the_payloads_of_another_store_takes_no_work(site, role):
    async with undisturbed(site):
        said = await refused(site, "--role", role, BACKSTAY_BLOBS=await blobs_of_another_store(site))
    assert ("BACKSTAY_BLOBS" in said, "store" in said) == (True, True)


@promise("workers:misfit-database")
async def test_a_worker_with_another_database_takes_no_work(site):
    async with undisturbed(site):
        said = await refused(site, "--role", "runs", BACKSTAY_HOME=site.home("elsewhere"))
    assert "BACKSTAY_DATABASE_URL: this worker's store is" in said
    assert "BACKSTAY_TASK_QUEUE" in said


@promise("workers:misfit-sandbox")
async def test_a_sandbox_worker_whose_folder_belongs_to_no_store_takes_no_work(site):
    async with undisturbed(site):
        said = await refused(site, "--role", "sandbox", BACKSTAY_BLOBS=str(site.folder / "unmounted"))
    assert "BACKSTAY_BLOBS" in said
    assert "belongs to no store" in said


@promise("workers:away")
@pytest.mark.parametrize(
    ("role", "changed", "names"),
    [
        ("runs", {"TEMPORAL_ADDRESS": "127.0.0.1:9"}, "Temporal cannot be reached at 127.0.0.1:9"),
        ("sandbox", {"TEMPORAL_ADDRESS": "127.0.0.1:9"}, "Temporal cannot be reached at 127.0.0.1:9"),
        ("runs", {"BACKSTAY_DATABASE_URL": "postgresql://ana@127.0.0.1:9/backstay"}, "store: "),
    ],
)
async def test_a_worker_that_a_server_does_not_answer_ends_with_another_code_than_a_misfit(site, role, changed, names):
    away = await site.worker("--role", role, **changed)
    assert (await away.ended(60), names in away.said()) == (1, True), away.said()


@promise("workers:store-unusable")
async def test_a_worker_whose_database_must_be_replaced_is_not_started_again(site):
    (site.folder / "garbage.db").write_bytes(b"something else entirely" * 100)
    url = f"sqlite:///{site.folder}/garbage.db"
    assert "restore it or name another" in await refused(site, "--role", "runs", BACKSTAY_DATABASE_URL=url)


@promise("clients:store-aside")
async def test_what_the_store_adds_is_left_out_where_a_command_cannot_use_it(tmp_path):
    (tmp_path / "garbage.db").write_bytes(b"something else entirely" * 100)
    settings = Settings.load(None, home=tmp_path, database_url=f"sqlite:///{tmp_path}/garbage.db")
    rows = [{"id": "w", "run_id": "r", "state": "completed"}]
    await _mark_pruned(settings, rows)
    assert rows[0]["state"] == "completed"
    assert await undone_since(settings, "w") == frozenset()


@promise("workers:toolbox")
@pytest.mark.thorough
async def test_another_toolbox_is_only_named(site):
    other = site.folder / "other.json"
    shutil.copy(site.environment["BACKSTAY_TOOLBOX"], other)
    other.write_text(other.read_text() + "\n")
    async with undisturbed(site):
        named = await site.worker("--role", "runs", BACKSTAY_TOOLBOX=str(other))
        await named.ready()
        assert "worker.toolbox_differs" in named.said()
        named.kill(signal.SIGTERM)
        assert await named.ended(60) == 0


@promise("workers:home")
@pytest.mark.parametrize("deed", spread(["replaced by another one", "deleted"], 1))
async def test_a_worker_whose_home_is_gone_stops_and_says_so(site, deed):
    home, whole = site.folder / f"home-{deed[:7]}", Path(site.home(f"whole-{deed[:7]}"))
    home.symlink_to(whole)
    worked = await site.worker("--role", "runs", BACKSTAY_HOME=str(home), BACKSTAY_TASK_QUEUE=f"queue-{uuid.uuid4()}")
    await worked.ready()
    if deed == "deleted":
        await asyncio.to_thread(whole.rename, site.folder / "away")
    else:
        # At once: between two steps the worker would see it deleted.
        other = site.folder / "other-home"
        other.symlink_to(site.home("empty"))
        await asyncio.to_thread(other.replace, home)

    assert await worked.ended(90) == 2
    assert f"BACKSTAY_HOME: {home} was {deed} under a running worker" in worked.said()
