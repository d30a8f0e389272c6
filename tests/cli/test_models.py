"""What commands say of models.yaml: its faults before anything is started, and which of its endpoints answer."""

import asyncio
import socket
import subprocess
import sys

import pytest
import yaml

from backstay.testing import ScriptedModel
from tests.cli.commands import bare, environment_of, forked
from tests.engine import engine, share_images
from tests.native_apis import KEY as NATIVE_KEY
from tests.native_apis import MODELS, Says, Vendor
from tests.requirements import promise
from tests.sizes import spread

PRICE = {"input": 1, "output": 4}
KEY = "a-key-of-this-test"


def written(folder, said):
    (folder / "models.yaml").write_text(yaml.safe_dump(said), encoding="utf-8")
    return bare(
        TEMPORAL_ADDRESS="127.0.0.1:9",
        BACKSTAY_NSJAIL=str(folder / "no-nsjail"),
        BACKSTAY_TRUSTED=str(folder),
        A_KEY=KEY,
    )


@promise("models:strict")
@pytest.mark.thorough
async def test_a_worker_names_what_is_wrong_in_models_yaml_and_does_not_start(nursery, tmp_path):
    said = {"endpoints": {"a": {"base_url": "http://127.0.0.1:9/v1", "key": KEY}}}

    done = await forked(nursery, "worker", environment=written(tmp_path, said), folder=tmp_path)

    assert done.code == 2
    assert "models.yaml: endpoints.a.key: not a reference; write ${NAME}" in done.err
    assert KEY not in done.err


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pydantic_ai":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
"""
LOADED = """
import asyncio, sys
import worker, activities.registry
from activities.endpoints.endpoints import open_endpoints
from activities.model.sending import load_natives
from backstay.settings import Settings
async def main():
    async with open_endpoints(Settings.load(None)) as endpoints:
        load_natives(endpoints)
asyncio.run(main())
print(*sorted({"pydantic_ai", "anthropic", "google.genai"} & sys.modules.keys()))
"""


def python(*arguments, environment, folder):
    command = (sys.executable, "-W", "ignore", *arguments)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=150
    )


@promise("models:native-loaded")
async def test_a_worker_without_the_extra_refuses_a_native_api_with_field_and_fix(tmp_path):
    said = {"endpoints": {"a": {"base_url": "http://127.0.0.1:9", "api": "anthropic"}}}

    (tmp_path / "sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    environment = written(tmp_path, said) | {"PYTHONPATH": str(tmp_path)}

    done = await asyncio.to_thread(python, "-m", "backstay", "worker", environment=environment, folder=tmp_path)

    assert done.returncode == 2
    assert "endpoints.a.api: 'anthropic' needs the extra `native`; run pip install 'backstay[native]'" in done.stderr
    assert "Traceback" not in done.stderr


@promise("models:native-loaded")
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("api", "loaded"),
    spread([("chat", ""), ("responses", "pydantic_ai"), ("anthropic", "anthropic pydantic_ai")], 2),
)
async def test_nothing_of_the_extra_is_loaded_unless_models_yaml_names_its_api(tmp_path, api, loaded):
    said = {
        "endpoints": {"a": {"base_url": "http://127.0.0.1:9", "api": api}},
        "models": {"main": {"endpoint": "a", "model": "m"}},
    }

    done = await asyncio.to_thread(python, "-c", LOADED, environment=written(tmp_path, said), folder=tmp_path)

    assert (done.stdout.strip(), done.returncode) == (loaded, 0), done.stderr


@promise("models:native-keys")
@pytest.mark.parametrize(("api", "key"), spread([(api, key) for key in (NATIVE_KEY, None) for api in MODELS], 3))
async def test_doctor_asks_a_native_endpoint_with_its_own_key_or_none_what_models_it_has(nursery, tmp_path, api, key):
    share_images(tmp_path / ".backstay")
    async with Vendor(api, lambda *_: Says(), key=key).open() as vendor:
        entry = {"base_url": vendor.base_url, "api": api, "key": "${NATIVE_KEY}" if key else None}
        models = {
            "main": {"endpoint": "a", "model": MODELS[api], "price": PRICE, "fallback": ["other"]},
            "other": {"endpoint": "a", "model": "nobody-knows", "price": PRICE},
        }
        environment = written(tmp_path, {"endpoints": {"a": entry}, "models": models, "use": {"act": "main"}})
        environment |= {"NATIVE_KEY": NATIVE_KEY, "OPENAI_API_KEY": KEY}
        done = await forked(nursery, "doctor", "--all", environment=environment, folder=tmp_path)

    told = [line for line in done.out.splitlines() if " model " in f" {line} "]
    assert told[0].split()[0] == "ok"
    assert told[0].endswith(" answers")
    assert "does not list nobody-knows" in told[1]


@promise("models:untrusted")
async def test_a_models_yaml_of_a_folder_that_nobody_trusts_is_not_obeyed(nursery, tmp_path):
    environment = written(tmp_path, {}) | {"BACKSTAY_TRUSTED": ""}

    done = await forked(nursery, "doctor", environment=environment, folder=tmp_path)

    assert done.code == 2
    assert "not trusted, so models.yaml in it is not obeyed" in done.err


@promise("models:doctor")
async def test_doctor_checks_every_endpoint_that_runs_may_use_and_every_price(nursery, tmp_path):
    share_images(tmp_path / ".backstay")
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        async with ScriptedModel([]) as model:
            dead = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
            said = {
                "endpoints": {"a": {"base_url": model.base_url, "key": "${A_KEY}"}, "b": {"base_url": dead}},
                "models": {
                    "main": {"endpoint": "a", "model": "scripted", "price": PRICE, "fallback": ["spare"]},
                    "spare": {"endpoint": "b", "model": "nobody-knows"},
                    "unused": {"endpoint": "b", "model": "m"},
                },
                "use": {"act": "main", "closing": "spare"},
            }
            environment = written(tmp_path, said)
            done = await forked(nursery, "doctor", "--all", environment=environment, folder=tmp_path)

    lines = [line for line in done.out.splitlines() if " model " in f" {line} " or " price " in line]
    told = [(line.split()[0], line.split(maxsplit=1)[1].strip()) for line in lines]
    assert [state for state, _ in told] == ["ok", "ok", "missing", "missing"]
    assert told[0][1].startswith("model ")
    assert told[2][1].startswith(f"model spare        {dead}: APIConnectionError")
    assert told[3][1].endswith("no price is known for spare; give it a price in models.yaml")
    assert KEY not in done.out + done.err
    assert not model.requests


@promise("models:unknown")
@pytest.mark.parametrize(
    ("named", "nearest"), [("smal", "did you mean 'small'? Otherwise name"), ("zzz", "; name one that it has")]
)
async def test_a_mistyped_model_is_told_as_one_that_models_yaml_does_not_have(
    temporal, nursery, tmp_path, named, nearest
):
    entry = {"endpoint": "here", "model": "m", "price": PRICE}
    listed = {"endpoints": {"here": {"base_url": "http://127.0.0.1:9"}}, "models": {"small": entry, "large": entry}}
    (tmp_path / "models.yaml").write_text(yaml.safe_dump(listed), encoding="utf-8")
    own = {"models": tmp_path / "models.yaml", "model": "large", "openai_base_url": None, "openai_api_key": None}
    async with engine(temporal, tmp_path, [], **own) as opened:
        environment = environment_of(opened, BACKSTAY_TRUSTED=str(tmp_path))
        done = await forked(nursery, "run", "Do it.", "--model", named, environment=environment, folder=tmp_path)

    assert done.code == 2
    assert f"model: models.yaml has no model '{named}'" in done.err
    assert nearest in done.err
    assert "(large, small)" in done.err
