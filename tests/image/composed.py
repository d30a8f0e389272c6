"""Read docker-compose.yml with Compose itself, and turn one of its services into a container of `containers.py`."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.image.containers import Container, Mount
from tests.image.filters import compiled
from tests.image.layers import Stage

HOUSE = Path(__file__).resolve().parents[2]
FILE = HOUSE / "docker-compose.yml"
OURS = (
    *("BACKSTAY_", "COMPOSE_", "CONFIG_", "IMAGE_", "OPENAI_", "OTEL_", "PAGE_", "POSTGRES_", "SECRETS_", "SLACK_"),
    "TEMPORAL_",
)


def compose(
    *arguments: str,
    files: Sequence[Path] = (FILE,),
    env_file: Path = Path(os.devnull),
    profile: str = "",
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Have Compose read the files, with nothing of this machine's own settings."""
    program = Path(sys.executable).with_name("docker-compose")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)} | environment
    named = [word for file in files for word in ("--file", str(file))]
    named += ["--profile", profile] if profile else []
    command = (str(program), *named, "--env-file", str(env_file), "config", *arguments)
    return subprocess.run(command, env=clean, capture_output=True, text=True, check=False, timeout=150)


def resolved(**options: Any) -> dict[str, Any]:
    """Return the whole file as Compose understands it."""
    answer = compose("--format", "json", **options)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def of_service(
    name: str,
    whole: Mapping[str, Any],
    stage: Stage,
    *,
    volumes: Mapping[str, Path],
    mounts: Sequence[Mount] = (),
    command: Sequence[str] = (),
    **environment: str,
) -> Container:
    """Return a service as it is described, with folders in place of its volumes and some variables of one's own."""
    service = whole["services"][name]
    options = dict(
        option.split("=", 1) if "=" in option else option.split(":", 1) for option in service["security_opt"]
    )
    profile = options.pop("seccomp", "")
    assert options.pop("no-new-privileges") == "true"
    assert options in ({}, {"apparmor": "unconfined"})
    uid, gid = (int(number) for number in service["user"].split(":"))
    return Container(
        lower=stage.layers,
        command=[*stage.words("ENTRYPOINT"), *(command or service["command"])],
        environment={**stage.environment, **service["environment"], **environment},
        folder=stage.folder,
        mounts=[
            *(_volume(each, volumes) for each in service.get("volumes", ())),
            *(
                Mount(Path(whole["secrets"][each["source"]]["file"]), f"/run/secrets/{each['source']}", read_only=True)
                for each in service.get("secrets", ())
            ),
            *mounts,
        ],
        tmpfs=[place.split(":")[0] for place in service["tmpfs"]],
        read_only=service["read_only"],
        user=(uid, gid),
        cap_drop=service["cap_drop"],
        no_new_privs=True,
        filter=compiled(HOUSE / profile) if profile else b"",
        hostname=name,
    )


def _volume(each: Mapping[str, Any], volumes: Mapping[str, Path]) -> Mount:
    source = Path(each["source"]) if each["type"] == "bind" else volumes[each["source"]]
    return Mount(source, each["target"], read_only=each.get("read_only", False))
