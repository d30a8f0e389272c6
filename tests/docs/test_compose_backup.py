"""What the page for operators says to type to back up and restore what Compose runs.

No engine runs here. So Compose itself says whether it knows the flags, its file says what the commands may name, and
what they run inside of a service is run on this machine, with folders in place of volumes.
"""

import asyncio
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from store.opening import open_store
from tests.docs.blocks import HOUSE
from tests.docs.test_operations import commands, only, readable_by_others
from tests.image.composed import resolved
from tests.nursery.nursery import plain_environment
from tests.postgres import PROGRAMS, open_postgres
from tests.requirements import promise

BACK_UP, RESTORE = "Back up what Compose runs", "Restore what Compose runs"
VALUED = {"--profile", "--entrypoint"}
DATABASES = ("temporal", "temporal_visibility", "backstay")
OWN = ("ALTER DATABASE backstay OWNER TO backstay", "REVOKE ALL ON DATABASE backstay FROM PUBLIC")
ENGINE = """#!/bin/sh
# In place of an engine: run what a service would run, with folders in place of its volumes.
shift
while [ "$1" != exec ] && [ "$1" != run ]; do
    case "$1" in stop|up|build) exit 0 ;; esac
    shift
done
shift
program=backstay
while :; do
    case "$1" in
        --entrypoint) program="$2"; shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
case "$1" in
    postgres) shift; exec "$@" ;;
    database) exit 0 ;;
    worker) shift ;;
esac
case "$1" in tar) program=tar; shift ;; esac
for word in "$@"; do
    set -- "$@" "$(printf %s "$word" | sed "s,/var/lib/,$VOLUMES/,g")"
    shift
done
exec "$program" "$@"
"""


@dataclass
class Typed:
    """One command of `docker compose`."""

    line: str
    before: list[str]
    verb: str
    options: list[str]
    rest: list[str]

    @property
    def service(self):
        return self.rest[0]

    @property
    def inside(self):
        """What is run in the service."""
        return " ".join(self.rest[1:])


def parsed(line):
    words = re.split(r" [<>] ", line)[0]
    _, compose, *tokens = shlex.split(words)
    assert compose == "compose", line
    before, tokens = _options(tokens)
    options, rest = _options(tokens[1:])
    return Typed(line, before, tokens[0], options, rest)


def _options(tokens):
    end = 0
    while end < len(tokens) and tokens[end].startswith("-"):
        end += 2 if tokens[end] in VALUED else 1
    return tokens[:end], tokens[end:]


TYPED = [
    parsed(line)
    for heading in (BACK_UP, RESTORE)
    for block in commands(heading)
    for line in block.splitlines()
    if line.startswith("docker")
]


@pytest.fixture(scope="module")
def whole():
    return resolved(profile="slack")


@promise("deployment:backup")
@pytest.mark.parametrize("typed", TYPED, ids=[typed.line[:70] for typed in TYPED])
def test_a_command_has_flags_that_compose_knows_and_names_services_and_places_of_the_file(whole, typed):
    program = str(Path(sys.executable).with_name("docker-compose"))
    asked = (program, *typed.before, typed.verb, *typed.options, "--help")
    known = subprocess.run(asked, cwd=HOUSE, capture_output=True, text=True, check=False, timeout=150)
    assert known.returncode == 0, known.stderr

    if typed.verb not in {"exec", "run"}:
        assert set(typed.rest) <= whole["services"].keys()
        return
    service = whole["services"][typed.service]
    held = {each["target"]: each for each in service.get("volumes", ()) if each["type"] == "volume"}
    places = set(re.findall(r"/var/lib/[\w-]+", typed.inside))
    assert places <= held.keys()
    assert not any(held[place].get("read_only") for place in places)
    if places:
        owned = re.findall(r"--owner (\d+) --group (\d+) (\S+)", (HOUSE / "Dockerfile").read_text(encoding="utf-8"))
        assert {(place, service["user"]) for place in places} <= {(place, f"{u}:{g}") for u, g, place in owned}
    if "pg_" in typed.inside:
        assert typed.service == "postgres"
        assert "POSTGRES_USER" in service["environment"]


@promise("deployment:backup-all")
def test_every_database_and_every_volume_that_matters_is_backed_up_and_restored(whole):
    made = whole["services"]["schema"]["command"][0], (HOUSE / "deploy/database.sql").read_text(encoding="utf-8")
    named = {*re.findall(r"(?m)^bring_up_to_date (\w+)", made[0]), *re.findall(r"CREATE DATABASE (\w+)", made[1])}
    targets = {
        each["source"]: each["target"] for each in whole["services"]["worker"]["volumes"] if each["type"] == "volume"
    }
    back, restore = (
        [typed.line for block in commands(heading) for typed in TYPED if typed.line in block]
        for heading in (BACK_UP, RESTORE)
    )

    assert named == set(DATABASES)
    for name in named:
        assert any(f' {name}\' > "${{BACKUP:?}}/{name}.dump"' in line for line in back), name
        assert any(
            f'--create --username="$POSTGRES_USER" --dbname=postgres\' < "$BACKUP/{name}.dump"' in line
            for line in restore
        )
    for volume, target in targets.items():
        assert any(f'{target} . > "${{BACKUP:?}}/{volume}.tar"' in line for line in back), volume
        assert any(f'={target}\' < "$BACKUP/{volume}.tar"' in line for line in restore), volume
    section = (HOUSE / "docs/backup.md").read_text(encoding="utf-8").partition(f"### {BACK_UP}\n")[2]
    (rest,) = re.findall(r"The volumes (.+) hold nothing", section)
    assert set(re.findall(r"`(\w+)`", rest)) | targets.keys() | {"postgres"} == whole["volumes"].keys()


@promise("deployment:backup-back")
@pytest.mark.timeout(400)
async def test_what_the_commands_run_inside_brings_databases_and_volumes_back_as_they_were(tmp_path):
    volumes, programs = tmp_path / "volumes", tmp_path / "bin"
    home, blobs = volumes / "backstay", volumes / "backstay-blobs"
    for folder in (home, blobs, programs):
        folder.mkdir(parents=True, mode=0o700)
    (programs / "docker").write_text(ENGINE, encoding="utf-8")
    (programs / "docker").chmod(0o755)
    async with open_postgres() as server:
        await _run_all(server, ["CREATE ROLE temporal SUPERUSER LOGIN", "CREATE ROLE backstay LOGIN"], "postgres")
        await _run_all(server, [f"CREATE DATABASE {name}" for name in DATABASES], "postgres")
        await _run_all(server, OWN, "postgres")
        url = f"postgresql://temporal@/backstay?host={server.folder}"
        places = (programs, server.folder / PROGRAMS.name / "pginstall/bin", Path(sys.executable).parent)
        environment = plain_environment() | {
            "PATH": ":".join([*map(str, places), os.environ["PATH"]]),
            "PYTHONPATH": str(HOUSE),
            "PGHOST": str(server.folder),
            "POSTGRES_USER": "temporal",
            "VOLUMES": str(volumes),
            "BACKSTAY_DATABASE_URL": url,
            "BACKSTAY_HOME": str(home),
            "BACKSTAY_BLOBS": str(blobs),
        }
        async with open_store(database_url=url, home=home, blobs=blobs) as store:
            identity = store.identity
        for name in DATABASES:
            await _run_all(server, ["CREATE TABLE kept (id int)", "INSERT INTO kept VALUES (1)"], name)
        (blobs / "payload").write_text("as it was", encoding="utf-8")
        before = _files(volumes), {name: await _found(server, name) for name in DATABASES}

        await _typed([only(commands("Back up"), "export"), *commands(BACK_UP)], environment, tmp_path)
        (backup,) = (tmp_path / "backup").iterdir()
        assert readable_by_others(backup) == []
        environment["BACKUP"] = str(backup)
        for name in DATABASES:
            await _run_all(server, ["INSERT INTO kept VALUES (2)", "CREATE TABLE later (id int)"], name)
        (blobs / "payload").write_text("changed", encoding="utf-8")
        (blobs / ".later").mkdir()
        (home / "later").write_text("later", encoding="utf-8")
        *restoring, starting = commands(RESTORE)
        await _typed(restoring, environment, tmp_path)
        restored = _files(volumes), {name: await _found(server, name) for name in DATABASES}
        await _typed([starting], environment, tmp_path)
        async with open_store(database_url=url, home=home, blobs=blobs) as store:
            after = store.identity
    assert restored == before
    assert after.id == identity.id
    assert after.epoch > after.temporal_epoch > identity.epoch


async def _typed(blocks, environment, folder):
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", "\n".join(blocks)),
        env=environment,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(process.communicate(), 150)
    assert process.returncode == 0, said.decode()


async def _run_all(server, statements, database):
    connection = await asyncpg.connect(host=str(server.folder), user="postgres", database=database)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def _found(server, database):
    """What stands in the table of a test, which such tables there are, and who may do what in the database."""
    connection = await asyncpg.connect(host=str(server.folder), user="postgres", database=database)
    rights = "SELECT datdba::regrole::text, datacl::text FROM pg_database WHERE datname = current_database()"
    asked = ("SELECT id FROM kept", "SELECT relname FROM pg_class WHERE relname IN ('kept', 'later')", rights)
    try:
        return [list(map(tuple, await connection.fetch(question))) for question in asked]
    finally:
        await connection.close()


def _files(folder):
    """Every file and folder below one, with its rights and what it holds."""
    return {
        path.relative_to(folder): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }
