"""Opening the store: files, migrations, settings."""

import asyncio
import os
import shutil
import socket
import ssl
import stat
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, func, inspect, select
from structlog.testing import capture_logs

import store.database.place
import store.database.sqlite
from backstay.errors import SettingsInvalid, StoreUnavailable
from store.database.place import network_filesystem
from store.database.schema import metadata
from store.opening import open_store
from tests.connections.issuer import authority_in
from tests.requirements import promise
from tests.sizes import sized

ROOT = Path(__file__).parents[2]
OPEN_AND_PRINT = """
import asyncio, sys
from pathlib import Path
from store.opening import open_store

async def main():
    async with open_store(database_url=sys.argv[2] or None, home=Path(sys.argv[1])) as store:
        print(store.stamp)

asyncio.run(main())
"""
MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/export /home nfs4 rw 0 0
/dev/vdb /home/ana/local xfs rw 0 0
//nas/share /mnt/with\\040space cifs rw 0 0
ana@host:/ /mnt/far fuse.sshfs rw 0 0
host /mnt/host 9p rw 0 0
server:/old /mnt/twice nfs rw 0 0
/dev/vdc /mnt/twice ext4 rw 0 0
broken line
"""


OPTIONS = {"include_name": lambda name, kind, _parents: kind != "table" or not name.startswith("memory_index")}
"""The full-text index is no table that the schema can name; what it makes of its own is not compared."""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@promise("store:schema")
async def test_a_first_opening_makes_the_schema_that_the_code_expects(tmp_path, empty_database_url):
    async with open_store(database_url=empty_database_url, home=tmp_path) as store:
        differences = await store._database.read(
            lambda connection: compare_metadata(MigrationContext.configure(connection, opts=OPTIONS), metadata)
        )
    assert differences == []


@promise("store:schema")
async def test_a_store_stays_the_same_store_when_it_is_opened_again(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as first:
        ref = await first.blobs.of("w/r").put(b"kept")
    async with open_store(database_url=database_url, home=tmp_path) as second:
        assert second.stamp == first.stamp
        assert second.run_key("w/r") == first.run_key("w/r")
        assert await second.blobs.of("w/r").get(ref) == b"kept"


@promise("store:identity")
async def test_two_databases_are_two_stores(tmp_path, database_url, another_database_url):
    async with (
        open_store(database_url=database_url, home=tmp_path / "a") as first,
        open_store(database_url=another_database_url, home=tmp_path / "b") as other,
    ):
        assert first.identity.id != other.identity.id
        assert first.run_key("w/r") != other.run_key("w/r")


@promise("store:migrate")
@pytest.mark.thorough
async def test_processes_that_open_an_empty_database_at_once_find_one_store(tmp_path, empty_database_url):
    async def opened() -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", OPEN_AND_PRINT, str(tmp_path), empty_database_url or ""),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(150):
            output, _ = await process.communicate()
        assert process.returncode == 0
        return output.decode().splitlines()[-1]

    stamps = await asyncio.gather(*(opened() for _ in range(sized(3, 2))))
    assert len(set(stamps)) == 1


@promise("store:migration-place")
async def test_the_store_migrates_from_wherever_it_is_installed(tmp_path):
    shutil.copytree(ROOT / "store", tmp_path / "100% app" / "store")
    (tmp_path / "alembic.ini").write_text("[alembic]\nscript_location = nowhere\n", encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        f"import sys; sys.path[:0] = [{str(tmp_path / '100% app')!r}, {str(ROOT)!r}]; {OPEN_AND_PRINT}",
        *("home", ""),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(150):
        output, _ = await process.communicate()
    assert process.returncode == 0
    assert output.decode().splitlines()[-1].endswith("/1")
    assert (tmp_path / "home" / "backstay.db").is_file()


@promise("store:migrate")
async def test_openings_in_one_process_do_not_disturb_each_other(tmp_path):
    async def opened(home: Path) -> str:
        async with open_store(database_url=None, home=home) as store:
            return store.stamp

    stamps = await asyncio.gather(*(opened(tmp_path / name) for name in ("a", "a", "b", "c", "c")))
    assert stamps[0] == stamps[1]
    assert stamps[3] == stamps[4]
    assert len(set(stamps)) == 3


@promise("store:private")
async def test_files_and_directories_are_for_this_user_only(tmp_path):
    home = tmp_path / "deep" / "home"
    previous = os.umask(0)
    try:
        async with open_store(database_url=None, home=home) as store:
            await store.blobs.of("w/r").put(b"shown" * 20_000)
            await store.blobs.of("w/r").seal(b"raw" * 30_000)
            found = list((tmp_path / "deep").rglob("*"))
    finally:
        os.umask(previous)

    assert {mode(path) for path in found if path.is_dir()} == {0o700}
    assert {mode(path) for path in found if path.is_file()} == {0o600}
    assert {"backstay.db", "backstay.db-wal", "backstay.db.lock"} <= {path.name for path in found}


@promise("store:private-again")
async def test_a_database_that_was_restored_open_to_others_is_closed_and_that_is_said(tmp_path):
    async with open_store(database_url=None, home=tmp_path):
        files = [tmp_path / name for name in ("backstay.db", "backstay.db-wal", "backstay.db-shm")]
        for path in files:
            path.chmod(0o644)
        (tmp_path / "shared.db").touch()
        (tmp_path / "shared.db").chmod(0o660)
        with capture_logs() as logs:
            async with open_store(database_url=None, home=tmp_path):
                assert {mode(path) for path in files} == {0o600}
            async with open_store(database_url=f"sqlite:///{tmp_path / 'shared.db'}", home=tmp_path):
                # What lets a group write was opened to it on purpose.
                assert mode(tmp_path / "shared.db") == 0o660
    (said,) = [entry for entry in logs if entry["event"] == "store.closed_to_others"]
    assert said["files"] == [path.name for path in files]


@promise("store:sqlite")
async def test_the_file_is_in_wal_mode_and_every_commit_is_synced(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        asked = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        answers = await store._database.read(
            lambda connection: [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in asked]
        )
    assert answers == ["wal", 2, 1, 5000]


@promise("store:place")
@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+aiosqlite"])
async def test_a_database_and_a_blob_directory_may_be_named(tmp_path, scheme):
    async with open_store(
        database_url=f"{scheme}:///{tmp_path}/elsewhere.db", home=tmp_path / "home", blobs=tmp_path / "payloads"
    ) as store:
        ref = await store.blobs.of("w/r").put(b"x" * 70_000)
    assert (tmp_path / "elsewhere.db").is_file()
    (folder,) = (tmp_path / "payloads").iterdir()
    assert (folder / ref).read_bytes() == b"x" * 70_000
    assert not (tmp_path / "home").exists()


@promise("store:place")
async def test_a_home_with_odd_characters_works(tmp_path):
    home = tmp_path / "50% off? #1 ünï"
    async with open_store(database_url=None, home=home):
        pass
    assert (home / "backstay.db").is_file()


@promise("store:refused")
@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?uri=true",
        "mysql://u:hidden@h/d",
        "nonsense",
        "://",
        "x:y:z",
    ],
)
async def test_a_database_that_cannot_hold_the_promises_is_refused(tmp_path, url):
    with pytest.raises(SettingsInvalid) as refused:
        async with open_store(database_url=url, home=tmp_path):
            pass
    assert "BACKSTAY_DATABASE_URL" in str(refused.value)
    assert "hidden" not in str(refused.value)


@promise("store:refused")
async def test_a_home_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("not a directory", encoding="utf-8")
    with pytest.raises(SettingsInvalid):
        async with open_store(database_url=None, home=tmp_path / "file" / "home"):
            pass


async def opening_fault(home: Path) -> str:
    with pytest.raises(SettingsInvalid) as refused:
        async with open_store(database_url=None, home=home):
            pass
    return str(refused.value)


@promise("store:refused")
async def test_a_file_that_is_no_database_is_reported_in_one_line(tmp_path):
    (tmp_path / "backstay.db").write_bytes(b"something else entirely" * 100)
    assert await opening_fault(tmp_path) == (
        "store: file is not a database; the file is not a SQLite database; restore it or name another"
    )


@promise("store:refused")
async def test_a_damaged_file_and_one_that_may_not_be_written_are_refused_and_not_only_away(tmp_path, monkeypatch):
    file = tmp_path / "backstay.db"
    with monkeypatch.context() as closed:
        closed.setattr(store.database.sqlite, "_CONNECT", ("PRAGMA query_only = ON",))
        assert "give this user the right to write the file" in await opening_fault(tmp_path)
    async with open_store(database_url=None, home=tmp_path):
        pass
    whole = file.read_bytes()
    file.write_bytes(whole[:100] + bytes(4000) + whole[4100:])
    assert "the file is damaged; restore it from a backup" in await opening_fault(tmp_path)


@promise("store:newer")
async def test_a_database_of_a_newer_version_is_refused_untouched(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        await store._database.write(
            lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        )
    with pytest.raises(SettingsInvalid) as refused:
        async with open_store(database_url=database_url, home=tmp_path):
            pass
    assert "9999" in str(refused.value)
    assert "update backstay" in str(refused.value)


@promise("store:migrate")
async def test_a_migration_that_is_cut_off_leaves_nothing_behind(tmp_path, monkeypatch, empty_database_url):
    tables: list[str] = []

    def cut_off(connection: Connection) -> None:
        tables.extend(inspect(connection).get_table_names())
        raise KeyError("power")

    with monkeypatch.context() as broken:
        broken.setattr("store.opening.find_or_create", cut_off)
        with pytest.raises(KeyError):
            async with open_store(database_url=empty_database_url, home=tmp_path):
                pass
        assert "effects" in tables
        broken.setattr("store.opening.migrate", lambda *_: tables.clear())
        with pytest.raises(KeyError):
            async with open_store(database_url=empty_database_url, home=tmp_path):
                pass
    assert tables == []
    async with open_store(database_url=empty_database_url, home=tmp_path) as store:
        assert store.identity.epoch == 1


@promise("store:sqlite")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lib/x.db", None),
        ("/home/ana/x.db", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/x.db", None),
        ("/home/ana/local/x.db", None),
        ("/mnt/with space/x.db", "cifs"),
        ("/mnt/far/x.db", "fuse.sshfs"),
        ("/mnt/host/x.db", "9p"),
        ("/mnt/twice/x.db", None),
    ],
)
def test_the_nearest_and_latest_mount_decides_what_is_a_network_filesystem(path, expected):
    assert network_filesystem(PurePosixPath(path), MOUNTS) == expected


@promise("store:sqlite")
async def test_a_database_on_a_network_filesystem_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(store.database.place, "network_filesystem_here", lambda _: "nfs4")
    with pytest.raises(SettingsInvalid) as refused:
        async with open_store(database_url=None, home=tmp_path):
            pass
    assert "nfs4" in str(refused.value)
    assert not (tmp_path / "backstay.db").exists()


@promise("store:locks")
async def test_a_process_that_opens_its_store_twice_keeps_its_locks(tmp_path):
    """Else another process that closes the database takes the log of the writes away under this one."""
    source = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('select * from runs'); c.close()"
    async with open_store(database_url=None, home=tmp_path) as store:
        async with open_store(database_url=None, home=tmp_path):
            pass
        command = (sys.executable, "-c", source, str(tmp_path / "backstay.db"))
        other = await asyncio.create_subprocess_exec(*command)
        assert await asyncio.wait_for(other.wait(), 150) == 0
        assert (tmp_path / "backstay.db-wal").exists()
        assert await store.runs.newest(1) == []


@promise("store:postgres-encoding")
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_cannot_hold_every_text_is_refused_untouched(
    tmp_path, postgres, empty_postgres_url, encoding
):
    holder = await asyncpg.connect(empty_postgres_url)
    name = f"narrow_{encoding.lower()}"
    await holder.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0")
    await holder.close()
    address = f"postgresql://postgres:hidden@/{name}?host={postgres.folder}"
    holder = await asyncpg.connect(address)
    made = "CREATE TABLE alembic_version AS SELECT 'v1' AS version_num"
    for first, rest in (("SELECT 1", ""), (made, ", and restore a backup")):
        await holder.execute(first)
        with pytest.raises(SettingsInvalid, match=f"{encoding}.*ENCODING 'UTF8' TEMPLATE template0{rest}") as refused:
            async with open_store(database_url=address, home=tmp_path):
                pass
        assert "hidden" not in str(refused.value)
        assert ("restore" in str(refused.value)) == bool(rest)
        tables = await holder.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert tables == bool(rest)
    await holder.close()


@promise("store:postgres-fields")
@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ("sslmode=require", "backstay"),
        ("sslmode=require&channel_binding=require&connect_timeout=10", "backstay"),
        ("ssl=true&sslnegotiation=postgres&application_name=one%20of%20ours", "one of ours"),
        ("sslmode=verify-full&sslrootcert=system&options=-c%20work_mem%3D5MB", "backstay"),
        ("keepalives=1&keepalives_idle=30&gssencmode=disable&target_session_attrs=read-write", "backstay"),
    ],
)
async def test_an_address_as_servers_hand_it_out_is_understood(tmp_path, postgres_url, fields, name):
    asked = [func.current_setting("application_name"), func.current_setting("work_mem")]
    async with open_store(database_url=f"{postgres_url}&{fields}", home=tmp_path) as store:
        found = await store._database.read(lambda connection: connection.execute(select(*asked)).one())
    assert tuple(found) == (name, "5MB" if "work_mem" in fields else "4MB")


@promise("store:postgres-fields")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("pgbouncer=true", "the field pgbouncer after the question mark cannot be used: it tells of transaction"),
        ("sslmode=require&pool_timeout=hidden", "the field pool_timeout after"),
        ("sslcrldir=/hidden", "the field sslcrldir after"),
        ("sslmode=hidden", "the field sslmode after the question mark cannot be used: write one of disable, allow"),
        ("ssl=hidden", "the field sslmode after"),
        ("ssl=require&sslmode=verify-full", "the field ssl after"),
        ("sslmode=require&sslrootcert=system", "write verify-full beside sslrootcert=system"),
        ("sslrootcert=system&sslpassword=hidden", "the field sslpassword after"),
        ("sslmode=verify-full&sslrootcert=/hidden", "the field sslrootcert after"),
        ("sslkey=/hidden", "the field sslkey after"),
        ("channel_binding=require&sslmode=disable", "the field channel_binding after"),
        ("gssencmode=require", "the field gssencmode after"),
        ("target_session_attrs=standby", "the field target_session_attrs after"),
        ("connect_timeout=hidden", "the field connect_timeout after"),
        ("hid%3Dden=1", "one of the fields after"),
        ("host=a,b&port=5432,hidden", "its hosts or ports cannot be used"),
        ("host=a,b&port=1,2,3", "its hosts or ports cannot be used"),
        ("host=a,&port=1", "its hosts or ports cannot be used"),
        ("host=a:hidden,b", "its hosts or ports cannot be used"),
        ("host=a,b:99999", "its hosts or ports cannot be used"),
        ("port=99999", "its hosts or ports cannot be used"),
        ("port=0", "its hosts or ports cannot be used"),
        ("prepared_statement_cache_size=hidden", "the field prepared_statement_cache_size after"),
        ("service=hidden", "the field service after"),
        ("sslmode=require&sslrootcert=/etc", "the field sslrootcert after"),
        ("sslmode=require&sslrootcert=/etc/passwd", "as sslrootcert and sslcrl"),
        ("sslmode=require&sslcert=/etc/passwd", "check sslcert, sslkey and sslpassword"),
    ],
)
async def test_a_field_that_cannot_be_heeded_is_refused_by_its_name_and_never_left_out(tmp_path, fields, said):
    with pytest.raises(SettingsInvalid) as refused:
        async with open_store(database_url=f"postgresql://a:hidden@127.0.0.1:9/b?{fields}", home=tmp_path):
            pass
    assert said in str(refused.value)
    assert "hid" not in str(refused.value)


@promise("store:postgres-hosts")
@pytest.mark.parametrize(
    ("front", "fields"),
    [
        ("{mute},{up}", ""),
        ("{mute},{folder}", ""),
        ("", "host=127.0.0.1,{folder}&port={port},5432"),
        ("", "host={mute}&host={up}"),
        ("127.0.0.1,127.0.0.2:{port},{up}", "host={mute},{up}"),
        ("", "host=[::1]:1,{mute},::1,localhost&port={there}"),
    ],
)
async def test_a_host_that_is_silent_keeps_none_of_the_others_from_being_asked(
    tmp_path, postgres, postgres_url, front, fields
):
    database = postgres_url.partition("@/")[2].partition("?")[0]
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        async with before(postgres, authority_in(tmp_path)) as there:
            places = {
                "mute": f"127.0.0.1:{port}",
                "up": f"localhost:{there}",
                "there": there,
                "port": port,
                "folder": quote(str(postgres.folder), safe=""),
            }
            address = f"postgresql://postgres:a,b@{front}/{database}?connect_timeout=2&sslmode=require&{fields}"
            async with open_store(database_url=address.format(**places), home=tmp_path) as store:
                _waiting_at(mute)
                await asyncio.gather(*(store.runs.newest(1) for _ in range(4)))
                # What serves is asked first from then on.
                assert _waiting_at(mute) == 0


def _waiting_at(silent: socket.socket) -> int:
    """Return how many connections wait at a server that takes none, and close them."""
    silent.setblocking(False)
    found = 0
    with suppress(BlockingIOError):
        while True:
            silent.accept()[0].close()
            found += 1
    return found


@promise("store:postgres-hosts")
async def test_a_host_that_closes_every_connection_keeps_none_of_the_others_from_being_asked(
    tmp_path, postgres, postgres_url
):
    database = postgres_url.partition("@/")[2].partition("?")[0]
    folder = quote(str(postgres.folder), safe="")
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as closing:
        port = closing.sockets[0].getsockname()[1]
        address = f"postgresql://postgres@/{database}?host=127.0.0.1:{port},{folder}&sslmode=disable"
        async with open_store(database_url=address, home=tmp_path) as store:
            await store.runs.newest(1)


@promise("store:postgres-tls")
async def test_a_server_is_known_by_its_certificate_where_that_is_asked_for(
    tmp_path, monkeypatch, postgres, postgres_url
):
    monkeypatch.setenv("HOME", str(tmp_path))
    made = authority_in(tmp_path)
    (tmp_path / "other").mkdir()
    other = authority_in(tmp_path / "other")
    database = postgres_url.partition("@/")[2].partition("?")[0]

    async def opened(host: str, fields: str) -> None:
        address = f"postgresql://postgres@{host}:{port}/{database}?{fields}"
        async with open_store(database_url=address, home=tmp_path) as store:
            assert await store.runs.newest(1) == []

    async with before(postgres, made) as port:
        await opened("127.0.0.1", "sslmode=require")
        await opened("localhost", f"sslmode=verify-full&sslrootcert={made.trusted}")
        await opened("127.0.0.1", f"channel_binding=require&sslrootcert={made.trusted}")
        for host, fields, fix in (
            ("localhost", f"sslmode=verify-full&sslrootcert={other.trusted}", "sslrootcert"),
            ("localhost", "sslmode=verify-full&sslrootcert=system", "sslrootcert"),
            ("localhost", "sslmode=require&channel_binding=require", "sslrootcert"),
            ("localhost", "sslmode=verify-full", "sslrootcert"),
        ):
            with pytest.raises(SettingsInvalid, match=f"certificate.*{fix}"):
                await opened(host, fields)
    async with before(postgres, made, "127.0.0.2") as port:
        with pytest.raises(SettingsInvalid, match="mismatch"):
            await opened("127.0.0.2", f"sslmode=verify-full&sslrootcert={made.trusted}")
    async with before(postgres, None) as port:
        with pytest.raises(StoreUnavailable, match="rejected SSL upgrade"):
            await opened("localhost", "sslmode=require")


@asynccontextmanager
async def before(server, authority, host="127.0.0.1"):
    """Listen before a Postgres on a free port, with TLS where there is a certificate for it; yields the port."""

    async def carry(reader, writer):
        with suppress(asyncio.IncompleteReadError):
            while data := await reader.read(1 << 16):
                writer.write(data)
        writer.close()

    async def answer(reader, writer):
        # Each connection begins by asking for TLS.
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readexactly(8)
            writer.write(b"N" if authority is None else b"S")
            if authority is None:
                return
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(authority.certificate, authority.key)
            await writer.start_tls(context)
            there = await asyncio.open_unix_connection(str(server.folder / ".s.PGSQL.5432"))
            await asyncio.gather(carry(reader, there[1]), carry(there[0], writer))

    listening = await asyncio.start_server(answer, host, 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
