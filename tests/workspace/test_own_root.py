"""Commands in a root of the operator's own: what it may be, what is refused, and that nothing in it is a way out."""

import os
import shutil
from pathlib import Path

import pytest
import pytest_asyncio

from backstay.errors import ImageMissing
from sandbox.images.own_root import find_root
from sandbox.workspaces.client import open_workspace_client
from tests.requirements import promise
from tests.sandbox.places import HOUSE, image
from toolbox.toolbox import open_toolbox

TOOL = '#!/bin/sh\necho "own: $1"\n'


@pytest.fixture(scope="module")
def root(area) -> Path:
    """An image as others make them: with what escapes by a link, by a set-uid bit, or by what engines leave behind."""
    made = area / "debian-with-tool"
    shutil.copytree(image("shell").path, made, symlinks=True)
    for name in ("workspace", "tmp"):
        (made / name).rmdir()
    (made / "opt").mkdir()
    (made / "opt/tool").write_text(TOOL, encoding="utf-8")
    (made / "opt/tool").chmod(0o4755)
    (made / "etc/out").symlink_to(area / "outside")
    (made / "up").symlink_to("../../../..")
    (made / "dev/console").touch()
    (made / ".dockerenv").touch()
    (area / "outside").write_text("secret of the machine", encoding="utf-8")
    return made


@pytest_asyncio.fixture(scope="module")
async def client(area, root):
    home = area / "own-home"
    home.mkdir(mode=0o711)
    (home / "images").symlink_to(area / "images")
    opened = open_workspace_client(
        home / "workspaces", home=home, nsjail=None, root=root, rooms=HOUSE, variables=dict(os.environ)
    )
    async with opened as found:
        await found.start()
        yield found


async def run(client, command, **more):
    said = await client.call(
        workspace="own", run="r", tool="run", writable=True, effect=f"e {command}", seconds=60.0,
        arguments={"command": command, **more},
    )  # fmt: skip
    return said["ok"], said["used"]


@promise("workspaces:own-root")
async def test_commands_run_in_the_operators_root_and_its_name_is_recorded(client, root, tmp_path):
    digest = find_root(root, apart_from=()).digest
    told, used = await run(client, "/opt/tool hello > said; cat said; echo $PATH; ls /")
    assert told["stdout"].splitlines() == [
        "own: hello",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        *sorted(("bin", "dev", "etc", "lib", "lib64", "opt", "tmp", "up", "usr", "workspace")),
    ]
    assert used["image"] == client.root == f"debian-with-tool {digest[:12]}"
    listed = await client.call(workspace="own", run="r", tool="list_directory", arguments={}, writable=False)
    assert [entry["path"] for entry in listed["ok"]["entries"]] == ["said"]
    (tmp_path / "toolbox.json").write_text("{}", encoding="utf-8")
    async with open_toolbox(tmp_path / "toolbox.json", environment={}, home=tmp_path, workspaces=client) as tools:
        offered = await tools.index(0)
        assert offered["shell"].words == f"1 tool (1 restricted_write), in {client.root}"


@promise("workspaces:own-root-hostile")
async def test_nothing_in_a_root_leads_out_of_it_or_can_be_written(client, root):
    told, _ = await run(
        client,
        "cat /etc/out; ls /up/home /dev; id -u; for at in / /opt /usr/bin /etc; do touch $at/x; done; "
        "echo y >> /opt/tool; chmod 777 /opt; mkdir /made; python3 -c 'import socket; socket.socket()'",
    )
    assert "secret of the machine" not in told["stdout"] + told["stderr"]
    assert told["stdout"].split() == ["/dev:", "full", "null", "random", "urandom", "zero", "1000"]
    assert told["stderr"].count("Read-only file system") >= 6
    assert "Operation not permitted" in told["stderr"]
    assert (root / "opt/tool").read_text(encoding="utf-8") == TOOL
    assert not (root / "workspace").exists()


@promise("workspaces:own-root-checked")
async def test_a_root_that_is_none_is_refused_with_the_fix(area, root, tmp_path):
    def refusal(folder, apart=()):
        with pytest.raises(ImageMissing) as refused:
            find_root(folder, apart_from=apart)
        assert str(refused.value).startswith(f"BACKSTAY_SHELL_ROOT: {folder} ")
        return str(refused.value)

    empty = tmp_path / "empty"
    (empty / "bin").mkdir(parents=True)
    assert "is not an absolute path" in refusal(Path("here"))
    assert "is not a folder; unpack an image there" in refusal(tmp_path / "none")
    assert "is the root of this machine" in refusal(Path("/"))
    assert "is not apart from" in refusal(root, (area,))
    assert "is not apart from" in refusal(root, (root / "opt",))
    assert "has neither /bin/bash nor /bin/sh" in refusal(empty)
    for target in ("/bin/sh", "../../../../../../../bin/sh", "sh"):
        (empty / "bin/sh").unlink(missing_ok=True)
        (empty / "bin/sh").symlink_to(target)
        assert "has neither" in refusal(empty), target
    os.mkfifo(empty / "bin/pipe")
    assert "holds 'bin/pipe', a device, pipe or socket; remove it" in refusal(empty)


@promise("workspaces:own-root-checked")
async def test_a_root_whose_shell_does_not_start_gives_no_workspaces_and_the_reason(area):
    home, broken = area / "broken-home", area / "broken"
    home.mkdir(mode=0o711)
    (home / "images").symlink_to(area / "images")
    (broken / "bin").mkdir(parents=True)
    (broken / "bin/sh").write_text("no program", encoding="utf-8")
    (broken / "bin/sh").chmod(0o755)
    opened = open_workspace_client(None, home=home, nsjail=None, root=broken, rooms=HOUSE, variables=dict(os.environ))
    async with opened as client:
        with pytest.raises(Exception, match="does not start as it should"):
            await client.start()
        assert "BACKSTAY_SHELL_ROOT" in (client.reason or "")


@promise("workspaces:own-root")
def test_a_changed_root_has_another_digest(tmp_path, root):
    first = find_root(root, apart_from=()).digest
    assert find_root(root, apart_from=()).digest == first
    (root / "opt/tool").chmod(0o755)
    try:
        assert find_root(root, apart_from=()).digest != first
    finally:
        (root / "opt/tool").chmod(0o4755)
