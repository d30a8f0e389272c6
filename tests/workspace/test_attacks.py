"""Hostile commands in a workspace: what they reach for stays out of reach, for root and for a user without rights."""

import base64
import json
import platform
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.machine_code import CALLS, binary
from tests.sandbox.places import HOUSE, as_nobody, as_self, image, readable_nsjail
from tests.workspace.attacks import ATTACKS

SECRET = "the-worker-holds-this-secret"
USERS = {"self": as_self, "nobody": as_nobody}
SHOWN = [attack for attack in ATTACKS if not attack.call or platform.machine() == "x86_64"]


@pytest.fixture(scope="module", params=sorted(USERS))
def told(request) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The answers to every attack, made once for each user."""
    reachable = Path(tempfile.mkdtemp(prefix="backstay-"))
    reachable.chmod(0o755)
    folder = reachable / "worker"
    folder.mkdir(mode=0o755)
    built = image("shell")
    asked = {
        "nsjail": str(readable_nsjail().path),
        "image": built.hash,
        "images": str(built.path.parents[1]),
        "attacks": [
            {
                "name": attack.name,
                "command": attack.command,
                "writable": attack.writable,
                "seconds": attack.seconds,
                "call": base64.b64encode(binary(*CALLS[attack.call])).decode() if attack.call else "",
            }
            for attack in SHOWN
        ],
    }
    (reachable / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    source = (HOUSE / "tests/workspace/driver.py").read_text(encoding="utf-8")
    done = USERS[request.param](source, str(reachable / "asked.json"), folder=folder, timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    yield folder, json.loads(done.stdout)
    shutil.rmtree(reachable, ignore_errors=True)


@pytest.mark.timeout(1600)
@pytest.mark.parametrize("attack", SHOWN, ids=lambda attack: attack.name.replace(" ", "_"))
def test_what_a_hostile_command_reaches_for_stays_out_of_reach(attack, told):
    folder, answers = told
    first = answers[attack.name]
    root = folder / "workspaces" / f"w{SHOWN.index(attack)}"
    assert "raised" not in first["answer"], first["answer"]
    assert attack.holds(first["answer"], root), first["answer"]
    assert SECRET not in json.dumps(first["answer"])
    assert first["left"] == []
    assert first["connections"] == []
    assert first["victim"]
    assert first["outside"] == ["secret.txt"]
    assert set(first["here"]) <= {"outside", "profiles", "rooms", "snapshots", "state", "workspaces"}


def test_there_are_enough_attacks():
    assert len(SHOWN) >= 40
    assert len({attack.name for attack in SHOWN}) == len(SHOWN)
