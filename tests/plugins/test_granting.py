import json

from gateways.terminal.app import run
from system.folders import folder_hash
from tests.plugins.client import lay_out
from tests.requirements import promise


@promise("plugins:grant-command")
def test_a_command_grants_jobs_by_the_hash_of_the_files_and_takes_the_grant_back(tmp_path, monkeypatch, capsys):
    lay_out(tmp_path, "demo", demo={"env": {"KEY": "x"}})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKSTAY_TRUSTED", str(tmp_path))
    toolbox = tmp_path / "toolbox.json"
    assert run(["plugins", "grant", "demo", "say", "click-button", "--leave-out", "*.session"]) == 0
    granted = json.loads(toolbox.read_text(encoding="utf-8"))["providers"]["demo"]
    assert granted["env"] == {"KEY": "x"}
    assert granted["jobs"] == {
        "unasked": ["say", "click-button"],
        "sha256": folder_hash(tmp_path / "plugins/demo", ["*.session"]),
        "leave_out": ["*.session"],
    }
    assert run(["plugins", "grant", "demo", "say"]) == 0
    assert json.loads(toolbox.read_text(encoding="utf-8"))["providers"]["demo"]["jobs"]["unasked"] == ["say"]
    assert run(["plugins", "grant", "demo"]) == 0
    assert "jobs" not in json.loads(toolbox.read_text(encoding="utf-8"))["providers"]["demo"]
    assert run(["plugins", "grant", "nobody", "say"]) == 2
    assert "there is no plugin 'nobody'" in capsys.readouterr().err
