"""The daemon of plugins in the image of an agent, made by the lines of docs/plugins.md, as a user without any right."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.image.composed import HOUSE
from tests.image.containers import Container, Mount, started
from tests.image.layers import BASE, BUILD, DOCKERFILE, built
from tests.requirements import promise

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a clean root"),
]
USER = 10001
UNJAILED = {"plugins": {"folder": "plugins/", "jail": False}}
CLICK = {"plugin": "demo", "action": "click-button", "args": {"button-text": "Buy"}}
REQUESTS = [{"id": "h", "command": "help"}, {"id": "c", "command": "run", "payload": CLICK}]


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """Build the image of an agent: the base of our own, and the lines of the page."""
    assert BASE.is_dir(), "make a clean root first, with `make image-check`"
    folder = tmp_path_factory.mktemp("agent")
    listed = subprocess.run(("git", "ls-files", "-z"), cwd=HOUSE, check=True, capture_output=True, timeout=60).stdout
    for name in filter(None, listed.decode().split("\0")):
        (folder / "backstay" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOUSE / name, folder / "backstay" / name)
    shutil.copytree(HOUSE / "tests/plugins/plugins/demo", folder / "plugins/demo")
    (folder / "toolbox.json").write_text(json.dumps(UNJAILED), encoding="utf-8")
    first = next(line for line in DOCKERFILE.read_text(encoding="utf-8").splitlines() if line.startswith("FROM "))
    versions = [line for line in DOCKERFILE.read_text(encoding="utf-8").splitlines() if line.startswith("ARG ")]
    (lines,) = [block.text for block in blocks("dockerfile")]
    written = folder / "Dockerfile"
    written.write_text("\n".join([*versions, first, lines]), encoding="utf-8")
    return built(written, BUILD / "agent", folder)


def answered(stage, folder: Path, toolbox: dict | None = None):
    """Send the requests to a daemon; return its lines by their ids, and what it said beside them."""
    (folder / "requests").write_text("".join(json.dumps(each) + "\n" for each in REQUESTS), encoding="utf-8")
    mounts = [Mount(folder, "/requests", read_only=True)]
    if toolbox is not None:
        (folder / "toolbox.json").write_text(json.dumps(toolbox), encoding="utf-8")
        mounts.append(Mount(folder / "toolbox.json", "/opt/mcp/toolbox.json", read_only=True))
    folder.chmod(0o755)
    container = Container(
        lower=stage.layers,
        command=["/bin/sh", "-c", "(cat /requests/requests; sleep 20) | backstay plugins serve --local"],
        environment={**stage.environment, "HOME": "/tmp"},
        mounts=mounts,
        tmpfs=["/tmp", "/var/lib"],
        user=(USER, USER),
        cap_drop=["ALL"],
        no_new_privs=True,
    )
    with started(container, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        said, beside = process.communicate(timeout=120)
    lines = [json.loads(line) for line in said.decode().splitlines()]
    assert lines, beside.decode()
    assert (lines[0], lines[-1]) == ({"status": "ready"}, {"status": "shutdown"}), (lines, beside)
    return {name: [line for line in lines if line.get("id") == name] for name in ("h", "c")}, beside.decode()


@promise("plugins:agent-image")
def test_the_daemon_runs_plugins_in_an_agents_container_that_may_make_no_jails(stage, tmp_path):
    lines, _ = answered(stage, tmp_path)
    assert "click-button" in lines["h"][0]["payload"]["plugins"]["demo"]
    assert [line["status"] for line in lines["c"]] == ["queued", "started", "success"]
    assert lines["c"][-1]["payload"] == {"clicked": "Buy", "row": None, "loud": False}


@promise("plugins:agent-image")
def test_there_nothing_of_a_plugin_runs_unless_the_operator_says_that_it_needs_no_jail(stage, tmp_path):
    lines, beside = answered(stage, tmp_path, {"plugins": "plugins/"})
    assert lines["h"][0]["payload"] == {"plugins": {}}
    assert [line["status"] for line in lines["c"]] == ["error"]
    assert "unless `jail` is false" in beside
