from pathlib import Path
from types import SimpleNamespace

import pytest
from temporalio.service import ConnectConfig

from backstay.client.connecting import place_in_file
from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from backstay.variables import environment
from opening import secrets_of
from sandbox.workspaces.workspace import WorkspaceSettings
from tests.requirements import promise


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch, tmp_path):
    for name in environment(None):
        if name.upper().startswith(("BACKSTAY_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKSTAY_TRUSTED", str(tmp_path))


@promise("operations:model")
def test_without_anything_set_the_defaults_hold():
    settings = Settings.load()
    assert (settings.home, settings.toolbox, settings.policy) == (
        Path(".backstay"),
        Path("toolbox.json"),
        Path("policy.yaml"),
    )
    assert (settings.model, settings.task_queue, settings.system_role) == ("gpt-5.4-mini", "backstay", "system")
    assert (settings.max_completion_tokens, settings.context_tokens) == (4096, 60_000)
    assert (settings.transient_seconds, settings.settle_after_seconds, settings.request_deadline_seconds) == (45, 5, 30)
    assert settings.database_url_text is None
    assert settings.secrets() == frozenset()


@promise("operations:limits")
def test_without_anything_set_plans_and_artifacts_have_their_limits():
    settings = Settings.load()
    assert (settings.max_steps_per_plan, settings.step_timeout_seconds, settings.plans_days) == (20, 30, 90)
    assert settings.blocked_modules == ("subprocess", "os.system", "eval", "exec")
    assert settings.artifacts_mb == 200
    assert WorkspaceSettings(home=settings.home, workspaces=settings.home).artifacts_mb == 200


@promise("operations:settings")
def test_the_environment_comes_before_the_file(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("BACKSTAY_MODEL=from-file\nBACKSTAY_HOME=/from/file\nOTHER=1\n", encoding="utf-8")
    monkeypatch.setenv("BACKSTAY_MODEL", "from-environment")
    monkeypatch.setenv("BACKSTAY_NSJAIL", "")
    settings = Settings.load()
    assert (settings.model, settings.home, settings.nsjail) == ("from-environment", Path("/from/file"), None)
    assert settings.environment["OTHER"] == "1"
    assert Settings.load(None).home == Path(".backstay")


@promise("secrets:names")
def test_secrets_are_known_but_never_shown(monkeypatch):
    values = {
        "OPENAI_API_KEY": "o" * 20,
        "BACKSTAY_APPROVER_KEY": "a" * 20,
        "BACKSTAY_LEDGER_KEY": "short",
        "BACKSTAY_ENCRYPTION_KEYS": f"{'k' * 44}, {'l' * 44}",
        "BACKSTAY_NOTIFY_URLS": "https://hooks.example.com/secret-path",
        "BACKSTAY_DATABASE_URL": "postgresql://app:pass%2Fword9@db/app",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = Settings.load()
    assert settings.secrets() == {
        "o" * 20,
        "a" * 20,
        "k" * 44,
        "l" * 44,
        "https://hooks.example.com/secret-path",
        "pass/word9",
    }
    shown = repr(settings) + str(settings) + settings.model_dump_json()
    assert not [value for value in (*settings.secrets(), "short", "pass%2Fword9") if value in shown]
    assert settings.database_url_text == values["BACKSTAY_DATABASE_URL"]


@promise("secrets:worker-knows")
@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("BACKSTAY_DATABASE_URL", "postgresql://db/x?user=ana&password=pass%2Fword9", {"pass/word9"}),
        (
            "BACKSTAY_DATABASE_URL",
            "postgresql://a:password-1@db/x?sslpassword=password-2",
            {"password-1", "password-2"},
        ),
        ("TEMPORAL_API_KEY", "key-of-temporal", {"key-of-temporal"}),
        ("TEMPORAL_GRPC_META_AUTHORIZATION", "Bearer token-of-temporal", {"token-of-temporal"}),
        ("TEMPORAL_CODEC_AUTH", "codec-secret", {"codec-secret"}),
        ("PGPASSWORD", "password-of-postgres", {"password-of-postgres"}),
        ("https_proxy", "http://ana:password-1@proxy:3128", {"password-1"}),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20token-of-traces,x=1", {"token-of-traces"}),
    ],
)
def test_secrets_in_addresses_and_in_what_libraries_read_themselves_are_known(monkeypatch, name, value, secrets):
    monkeypatch.setenv(name, value)
    assert Settings.load().secrets() == secrets


@promise("secrets:worker-knows")
def test_a_key_that_temporal_is_reached_with_is_known_wherever_it_was_read():
    headers = {"authorization": "Bearer token-of-the-file", "temporal-namespace": "a-namespace"}
    connected = ConnectConfig(target_host="127.0.0.1:9", api_key="key-of-the-file", rpc_metadata=headers)
    client = SimpleNamespace(service_client=SimpleNamespace(config=connected))
    assert secrets_of(client) == {"key-of-the-file", "token-of-the-file"}


@promise("budget:prices")
def test_prices_are_read_by_model(monkeypatch):
    monkeypatch.setenv("BACKSTAY_PRICES", '{"own": {"input": 0.5, "output": 2}}')
    price = Settings.load().prices["own"]
    assert (price.input, price.cached, price.output) == (0.5, None, 2)


@promise("operations:settings-refused")
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BACKSTAY_APROVER_KEY", "secret-value", "did you mean BACKSTAY_APPROVER_KEY"),
        ("BACKSTAY_MAX_COMPLETION_TOKENS", "many", "integer"),
        ("BACKSTAY_SYSTEM_ROLE", "user", "'system' or 'developer'"),
        ("BACKSTAY_TRANSIENT_SECONDS", "inf", "finite"),
        ("BACKSTAY_PRICES", "{", "invalid JSON"),
        ("BACKSTAY_PRICES", '{"m": {"input": 1, "output": 1}, "m": {"input": 2, "output": 2}}', "m: duplicate key"),
        pytest.param("BACKSTAY_PRICES", '{"a":' * 100_000, "invalid JSON", id="deep"),
        ("BACKSTAY_PRICES", '{"m": {"input": -1, "output": 1}}', "m.input"),
        ("BACKSTAY_PRICES", '{"m": {"input": 1, "output": 1, "reasoning": 1}}', "m.reasoning"),
        ("BACKSTAY_PRICES", '{"m": {"input": 1, "output": 1, "request": -1}}', "m.request"),
        ("BACKSTAY_PRICES", '{"m": {"input": 1, "output": 1, "request": Infinity}}', "m.request"),
        ("BACKSTAY_NOTIFY_URLS", "https://ok.example,ftp://secret-value", "http://"),
        ("OPENAI_BASE_URL", "localhost", "http://"),
        ("OPENAI_BASE_URL", "http://ana:secret-value@127.0.0.1:9/v1", "leave out names, passwords and queries"),
        ("OPENAI_BASE_URL", "https://x.example/v1?code=secret-value", "leave out names, passwords and queries"),
        ("OPENAI_API_KEY", "sk-secret-value…", "holds a character that no header can carry"),
        ("OPENAI_API_KEY", "sk-secret-\nvalue", "holds a character that no header can carry"),
    ],
)
def test_a_faulty_setting_is_refused_by_name_without_telling_secrets(monkeypatch, name, value, said):
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsInvalid) as refused:
        Settings.load()
    assert str(refused.value).startswith(name)
    assert said in str(refused.value)
    assert "secret-value" not in str(refused.value)


@promise("operations:settings-refused")
def test_an_unknown_setting_in_the_file_is_refused(tmp_path):
    (tmp_path / ".env").write_text("BACKSTAY_MODLE=x\n", encoding="utf-8")
    with pytest.raises(SettingsInvalid, match="BACKSTAY_MODEL"):
        Settings.load()


@promise("operations:settings")
def test_values_given_in_code_come_first(monkeypatch):
    monkeypatch.setenv("BACKSTAY_MODEL", "from-environment")
    settings = Settings.load(model="from-code", openai_api_key="k" * 10)
    assert (settings.model, settings.secrets()) == ("from-code", {"k" * 10})


@promise("deployment:secret-files")
def test_a_folder_of_secret_files_counts_as_the_environment_which_comes_before_it(monkeypatch, tmp_path):
    folder = tmp_path / "held"
    folder.mkdir()
    held = {
        "BACKSTAY_APPROVER_KEY": "approver-key-of-a-file\n",
        "BACKSTAY_ENCRYPTION_KEYS": "first-key-of-a-file,second-key-of-a-file",
        "BACKSTAY_MODEL": "model-of-a-file",
        "BACKSTAY_LEDGER_KEY": "\n",
        "OPENAI_API_KEY": "model-key-of-a-file\n",
        "CRM_TOKEN": "token-of-a-file\n",
        "..not-a-variable": "left alone",
    }
    for name, value in held.items():
        (folder / name).write_text(value, encoding="utf-8")
    (tmp_path / ".env").write_text("BACKSTAY_MODEL=model-of-env\nOPENAI_API_KEY=key-of-env\n", encoding="utf-8")
    monkeypatch.setenv("BACKSTAY_SECRET_FILES", str(folder))

    settings = Settings.load()

    assert settings.approver_key_bytes == b"approver-key-of-a-file"
    assert [key.get_secret_value() for key in settings.encryption_keys] == [
        "first-key-of-a-file",
        "second-key-of-a-file",
    ]
    assert (settings.model, settings.ledger_key) == ("model-of-a-file", None)
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == "model-key-of-a-file"
    assert settings.environment["CRM_TOKEN"] == "token-of-a-file"
    assert settings.secrets() >= {"approver-key-of-a-file", "first-key-of-a-file", "model-key-of-a-file"}
    monkeypatch.setenv("BACKSTAY_MODEL", "model-of-the-environment")
    assert Settings.load().model == "model-of-the-environment"
    assert Settings.load(model="model-in-code").model == "model-in-code"


@promise("deployment:secrets-not-sent")
def test_a_key_of_a_secret_file_is_not_sent_to_an_address_of_the_folders_file(monkeypatch, tmp_path):
    (tmp_path / "held").mkdir()
    (tmp_path / "held/OPENAI_API_KEY").write_text("model-key-of-a-file", encoding="utf-8")
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://127.0.0.1:9/v1\n", encoding="utf-8")
    monkeypatch.setenv("BACKSTAY_SECRET_FILES", str(tmp_path / "held"))

    settings = Settings.load()

    assert settings.openai_api_key is None
    assert settings.withheld_key


@promise("deployment:secrets-refused")
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("BACKSTAY_APROVER_KEY", b"a-key-of-this-test", "BACKSTAY_APROVER_KEY: unknown setting"),
        ("BACKSTAY_APPROVER_KEY", b"\xff\xfe", "BACKSTAY_SECRET_FILES: "),
        (None, b"", "BACKSTAY_SECRET_FILES: "),
    ],
)
def test_secret_files_that_cannot_be_used_are_refused_by_name(monkeypatch, tmp_path, name, content, said):
    folder = tmp_path / "held"
    if name is not None:
        folder.mkdir()
        (folder / name).write_bytes(content)
    monkeypatch.setenv("BACKSTAY_SECRET_FILES", str(folder))

    with pytest.raises(SettingsInvalid, match=said) as refused:
        Settings.load()

    assert "a-key-of-this-test" not in str(refused.value)


@promise("operations:settings-unreadable")
def test_a_file_of_settings_that_is_not_utf_8_is_refused_by_name_without_telling_secrets(tmp_path):
    file = tmp_path / "settings"
    file.write_bytes("OPENAI_API_KEY=sesame\u00e9".encode("latin-1"))

    with pytest.raises(SettingsInvalid, match=r"settings: cannot be read .*save it as UTF-8") as refused:
        Settings.load(file)

    assert "sesame" not in str(refused.value)


@promise("operations:temporal-in-a-file")
@pytest.mark.parametrize("file", [".env", "held"])
@pytest.mark.parametrize("name", ["TEMPORAL_API_KEY", "TEMPORAL_TLS", "TEMPORAL_TLS_CLIENT_KEY_PATH"])
def test_what_protects_the_connection_to_temporal_is_refused_in_a_file(monkeypatch, tmp_path, file, name):
    for variable in environment(None):
        if variable.startswith("TEMPORAL_"):
            monkeypatch.delenv(variable)
    place = "TEMPORAL_ADDRESS=cloud.example.com:7233\nTEMPORAL_NAMESPACE=own\nTEMPORAL_UI_PORT=8233\n"
    (tmp_path / ".env").write_text(place, encoding="utf-8")
    (tmp_path / "held").mkdir()
    monkeypatch.setenv("BACKSTAY_SECRET_FILES", str(tmp_path / "held"))
    assert place_in_file(Settings.load()) == {"address": "cloud.example.com:7233", "namespace": "own"}
    if file == ".env":
        (tmp_path / file).write_text(f"{place}{name}=a-value-of-this-test\n", encoding="utf-8")
    else:
        (tmp_path / file / name).write_text("a-value-of-this-test", encoding="utf-8")

    with pytest.raises(SettingsInvalid, match=f"{name}: is in a file.*set it in the environment") as refused:
        place_in_file(Settings.load())

    assert "a-value-of-this-test" not in str(refused.value)
    # A server on this machine needs none of it.
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:7233")
    assert place_in_file(Settings.load()) == {"namespace": "own"}


@promise("operations:temporal-in-a-file")
@pytest.mark.parametrize("protects", ["TEMPORAL_API_KEY=a-key-of-this-test", "TEMPORAL_TLS=false"])
@pytest.mark.parametrize("address", ["localhost:7233", ""])
def test_a_server_on_this_machine_needs_nothing_that_protects_wherever_it_is_named(
    monkeypatch, tmp_path, protects, address
):
    for variable in environment(None):
        if variable.startswith("TEMPORAL_"):
            monkeypatch.delenv(variable)
    (tmp_path / ".env").write_text(f"TEMPORAL_ADDRESS={address}\n{protects}\n", encoding="utf-8")
    assert place_in_file(Settings.load()).get("address", "") == address
    # As of a `dev` that serves another machine's.
    if not address:
        with pytest.raises(SettingsInvalid, match="is in a file"):
            place_in_file(Settings.load(), "cloud.example.com:7233")
    # A profile that nobody reads may name a server elsewhere, so nobody knows which one is meant.
    (tmp_path / ".env").write_text("TEMPORAL_PROFILE=cloud\n", encoding="utf-8")
    with pytest.raises(SettingsInvalid, match="TEMPORAL_PROFILE: is in a file"):
        place_in_file(Settings.load())
