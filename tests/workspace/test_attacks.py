"""Hostile commands in a workspace: what they reach for stays out of reach, for root and for a user without rights."""

import base64
import json
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import promise
from tests.sandbox.machine_code import CALLS, binary
from tests.sandbox.places import HOUSE, as_nobody, as_self, image, readable_nsjail
from tests.sizes import FULL
from tests.workspace.attacks import ATTACKS

SECRET = "the-worker-holds-this-secret"
USERS = {"self": as_self, "nobody": as_nobody}
SHOWN = [attack for attack in ATTACKS if not attack.call or platform.machine() == "x86_64"]
BY = {user: SHOWN if FULL else SHOWN[number :: len(USERS)] for number, user in enumerate(sorted(USERS))}
"""Each attack is made by one of the users; at full size by both."""


@pytest.fixture(scope="module")
def told() -> Iterator[Callable[[str], tuple[Path, dict[str, Any]]]]:
    """Return what gives the answers to every attack of a user; they are made once."""
    with ExitStack() as stack:
        yield cache(lambda user: answers_of(user, stack))


def answers_of(user: str, stack: ExitStack) -> tuple[Path, dict[str, Any]]:
    reachable = Path(tempfile.mkdtemp(prefix="backstay-"))
    stack.callback(shutil.rmtree, reachable, ignore_errors=True)
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
                "network": list(attack.network),
                "call": base64.b64encode(binary(*CALLS[attack.call])).decode() if attack.call else "",
            }
            for attack in BY[user]
        ],
    }
    (reachable / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    source = (HOUSE / "tests/workspace/driver.py").read_text(encoding="utf-8")
    done = USERS[user](source, str(reachable / "asked.json"), folder=folder, timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout)


@promise("workspaces:attacks")
@pytest.mark.timeout(1600)
@pytest.mark.parametrize(
    ("user", "place"),
    [
        pytest.param(user, place, id=f"{user}-{attack.name.replace(' ', '_')}")
        for user, attacks in BY.items()
        for place, attack in enumerate(attacks)
    ],
)
def test_what_a_hostile_command_reaches_for_stays_out_of_reach(told, user, place):
    attack = BY[user][place]
    folder, answers = told(user)
    first = answers[attack.name]
    root = folder / "workspaces" / f"w{place}"
    assert "raised" not in first["answer"], first["answer"]
    assert attack.holds(first["answer"], root), first["answer"]
    assert SECRET not in json.dumps(first["answer"])
    assert first["left"] == []
    assert first["connections"] == []
    assert first["victim"]
    assert first["outside"] == ["secret.txt"]
    assert set(first["here"]) <= {"outside", "profiles", "rooms", "snapshots", "state", "workspaces"}


@promise("workspaces:attacks")
def test_there_are_enough_attacks():
    assert len(SHOWN) >= 40
    assert len({attack.name for attack in SHOWN}) == len(SHOWN)
    assert {attack.name for attacks in BY.values() for attack in attacks} == {attack.name for attack in SHOWN}
