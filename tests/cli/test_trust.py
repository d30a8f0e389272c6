"""What a folder's files say counts only once the folder is trusted."""

import asyncio
import json
import sys

import pytest

from backstay.errors import SettingsInvalid
from backstay.settings import OBEYED, Settings
from backstay.variables import environment
from tests.cli.commands import bare, forked
from tests.requirements import promise

KEY = "key-of-the-environment"


@pytest.fixture
def strange(tmp_path):
    """Return a folder as a clone would leave it: what it starts leaves a mark."""
    folder = tmp_path / "strange"
    folder.mkdir()
    server = {"command": sys.executable, "args": ["-c", f"open({str(tmp_path / 'mark')!r}, 'w')"]}
    (folder / "toolbox.json").write_text(json.dumps({"mcpServers": {"evil": server}}), encoding="utf-8")
    return folder


@pytest.fixture
def run(nursery, tmp_path):
    async def run(*arguments, folder, **more):
        variables = bare(XDG_STATE_HOME=str(tmp_path / "state"), BACKSTAY_HOME=str(tmp_path / "home"), **more)
        return await forked(nursery, *arguments, environment=variables, folder=folder)

    return run


@promise("operations:folder")
async def test_a_strange_folder_starts_nothing_until_it_is_trusted_once(run, strange, tmp_path):
    before = await run("tools", "list", folder=strange)
    started_before = (tmp_path / "mark").exists()
    trusted = await run("trust", folder=strange)
    after = await run("tools", "list", folder=strange)
    started_after = (tmp_path / "mark").exists()
    forgotten = await run("trust", "--remove", folder=strange)
    again = await run("tools", "list", folder=strange)

    line = f"backstay: {strange}: not trusted, so toolbox.json in it is not obeyed; look at what is there, then run: "
    assert (before.code, before.err) == (2, f"{line}backstay trust {strange}\n")
    assert (trusted.code, after.code, forgotten.code, again.code) == (0, 0, 0, 2)
    assert (started_before, started_after) == (False, True)
    assert not any(path for path in strange.iterdir() if path.name != "toolbox.json")


@promise("operations:folder")
@pytest.mark.parametrize("name", [name for name in OBEYED if name != ".backstay"])
@pytest.mark.parametrize("arguments", [("list",), ("doctor",), ("run", "do it"), ("dev", "--headless")])
async def test_each_command_refuses_each_file_of_a_strange_folder(run, tmp_path, name, arguments):
    (tmp_path / name).write_text("", encoding="utf-8")
    done = await run(*arguments, folder=tmp_path)

    assert done.code == 2
    assert f"not trusted, so {name} in it is not obeyed" in done.err
    assert len(done.err.splitlines()) == 1


def settings(monkeypatch, folder, **variables):
    for name in environment(None):
        if name.upper().startswith(("BACKSTAY_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    return Settings.load()


@promise("operations:folder")
def test_what_the_process_names_itself_is_the_operators_word(monkeypatch, strange, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    named = settings(monkeypatch, strange, BACKSTAY_TOOLBOX=strange / "toolbox.json")
    (strange / ".env").write_text(f"BACKSTAY_TRUSTED={strange}\nBACKSTAY_TOOLBOX=toolbox.json\n", encoding="utf-8")
    with pytest.raises(SettingsInvalid, match=r"not trusted, so \.env in it"):
        settings(monkeypatch, strange, BACKSTAY_TOOLBOX=strange / "toolbox.json")
    listed = settings(monkeypatch, strange, BACKSTAY_TRUSTED=f"/nowhere, {strange}")

    assert named.toolbox == strange / "toolbox.json"
    assert listed.trusted[1] == strange


@promise("operations:folder")
def test_trust_holds_for_the_real_folder_and_not_for_those_inside_it(monkeypatch, strange, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "link").symlink_to(strange)
    inside = strange / "inside"
    inside.mkdir()
    (inside / "policy.yaml").touch()
    settings(monkeypatch, tmp_path, BACKSTAY_TRUSTED=tmp_path / "link")
    monkeypatch.chdir(strange)

    assert Settings.load().toolbox.exists()
    monkeypatch.chdir(inside)
    with pytest.raises(SettingsInvalid, match=r"policy\.yaml"):
        Settings.load()


@promise("operations:folder")
def test_a_home_that_this_user_made_is_obeyed_and_one_that_came_with_the_folder_is_not(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made, came = tmp_path / "made", tmp_path / "came"
    made.mkdir()
    (came / ".backstay").mkdir(parents=True)
    settings(monkeypatch, made).claim_home()
    (made / ".backstay").mkdir()

    assert settings(monkeypatch, made).home.is_dir()
    with pytest.raises(SettingsInvalid, match=r"\.backstay in it"):
        settings(monkeypatch, came)
    (made / "toolbox.json").touch()
    with pytest.raises(SettingsInvalid, match=r"toolbox\.json, \.backstay in it are"):
        settings(monkeypatch, made)


@promise("operations:key")
@pytest.mark.parametrize("spelling", ["OPENAI_BASE_URL", "openai_base_url"])
def test_an_address_from_a_file_gets_no_key_from_the_environment(monkeypatch, tmp_path, spelling):
    file = tmp_path / ".env"
    file.write_text(f"{spelling}=http://evil.example/v1\n", encoding="utf-8")
    trusted = {"BACKSTAY_TRUSTED": tmp_path}
    bare_key = settings(monkeypatch, tmp_path, OPENAI_API_KEY=KEY, **trusted)
    both = settings(monkeypatch, tmp_path, OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://own.example/v1", **trusted)
    file.write_text(f"{spelling}=http://evil.example/v1\nOPENAI_API_KEY=key-of-the-file\n", encoding="utf-8")
    beside = settings(monkeypatch, tmp_path, OPENAI_API_KEY=KEY, **trusted)

    assert (bare_key.openai_api_key, bare_key.withheld_key) == (None, True)
    assert KEY not in bare_key.environment.values()
    assert (both.openai_base_url, both.secrets(), both.withheld_key) == ("http://own.example/v1", {KEY}, False)
    assert beside.secrets() == {"key-of-the-file"}
    assert beside.environment["OPENAI_API_KEY"] == "key-of-the-file"


@promise("operations:key")
async def test_no_request_to_an_address_from_a_file_carries_the_key_of_the_environment(run, tmp_path):
    heads = []

    async def hear(reader, writer):
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        body = b'{"object": "list", "data": []}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body)
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={address}\n", encoding="utf-8")
    async with server:
        given = {"OPENAI_API_KEY": KEY, "BACKSTAY_TRUSTED": str(tmp_path), "BACKSTAY_NSJAIL": "/none"}
        done = await run("doctor", folder=tmp_path, **given)

    assert heads
    assert not any(KEY.encode() in head for head in heads)
    assert "OPENAI_API_KEY of the environment is not sent to OPENAI_BASE_URL of .env" in done.out
