"""docker-compose.yml, checked by Compose itself; no engine and no image is needed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HOUSE = Path(__file__).resolve().parents[1]
FILE = HOUSE / "docker-compose.yml"


def compose(*arguments: str, file: Path = FILE, **environment: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("docker-compose")
    ours = ("POSTGRES_", "TEMPORAL_", "COMPOSE_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)} | environment
    command = (str(program), "--file", str(file), "--env-file", os.devnull, "config", *arguments)
    return subprocess.run(command, env=clean, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def resolved() -> dict[str, Any]:
    answer = compose("--format", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_compose_accepts_the_file_without_any_variable_set():
    answer = compose("--quiet")

    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("    healthcheck:", "    healthchek:"), ("      postgres: {condition", "      nobody: {condition")],
)
def test_compose_refuses_a_misspelt_file(tmp_path, right, wrong):
    changed = tmp_path / "docker-compose.yml"
    changed.write_text(FILE.read_text(encoding="utf-8").replace(right, wrong, 1), encoding="utf-8")

    assert compose("--quiet", file=changed).returncode != 0


def test_every_published_port_is_bound_to_this_machine(resolved):
    published = [port for service in resolved["services"].values() for port in service.get("ports", [])]

    assert {port["host_ip"] for port in published} == {"127.0.0.1"}
    assert sorted(port["published"] for port in published) == ["7233", "8233"]


def test_every_service_that_stays_says_when_it_is_healthy(resolved):
    services = resolved["services"]
    staying = {name for name, service in services.items() if service["restart"] == "unless-stopped"}

    assert staying == {"postgres", "temporal", "ui"}
    assert all("healthcheck" in services[name] for name in staying)


def test_the_server_waits_for_its_schema_and_the_namespace_for_the_server(resolved):
    needs = {
        name: {need: how["condition"] for need, how in service.get("depends_on", {}).items()}
        for name, service in resolved["services"].items()
    }

    assert needs == {
        "postgres": {},
        "schema": {"postgres": "service_healthy"},
        "temporal": {"schema": "service_completed_successfully"},
        "namespace": {"temporal": "service_healthy"},
        "ui": {"temporal": "service_healthy"},
    }


def test_the_password_comes_from_the_environment():
    word = "a-password-of-this-test"

    answer = json.loads(compose("--format", "json", POSTGRES_PASSWORD=word).stdout)

    held = {name: service.get("environment", {}) for name, service in answer["services"].items()}
    assert held["postgres"]["POSTGRES_PASSWORD"] == word
    assert held["schema"]["SQL_PASSWORD"] == word
    assert held["temporal"]["POSTGRES_PWD"] == word
    assert all(word not in values.values() for name, values in held.items() if name in {"ui", "namespace"})


@pytest.mark.parametrize("service", ["schema", "namespace"])
def test_a_script_inside_the_file_is_a_correct_one(resolved, service):
    entry = resolved["services"][service]
    script = entry["command"][0].replace("$$", "$")

    checked = subprocess.run(
        (*entry["entrypoint"][:1], "-n", "-c", script), capture_output=True, check=False, timeout=20
    )

    assert (checked.returncode, checked.stderr) == (0, b"")
