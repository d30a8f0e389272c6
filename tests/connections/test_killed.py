"""A worker that is killed while a call waits for a sign-in, or amid a call of a user's own server."""

import asyncio
import json
import uuid
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from backstay.settings import Settings
from backstay.testing import Reply, ScriptedModel
from store.opening import open_store
from tests import signing
from tests.connections.crm import KEY as CRM_KEY
from tests.connections.crm import crm
from tests.connections.issuer import offered
from tests.connections.test_runs import ANA, POLICY, SCRIPTS, call, finish, sign_in
from tests.engine import ended, pending
from tests.nursery.nursery import worker_environment
from tests.requirements import promise
from tests.web.pages import KEY, behind_a_proxy, listed, served_page
from toolbox.configuration.load import load
from toolbox.own_servers.registry import UserServerRegistry


@promise("connections:parked")
@pytest.mark.thorough
async def test_the_same_call_goes_on_once_after_its_worker_was_killed(authority, temporal, nursery, tmp_path):
    policy, file, queue = tmp_path / "policy.yaml", tmp_path / "toolbox.json", f"queue-{uuid.uuid4()}"
    policy.write_text(POLICY, encoding="utf-8")
    async with offered(authority) as (issuer, notes), ScriptedModel(SCRIPTS) as model:
        told = {"mcpServers": {"notes": {"url": notes.url, "auth": {}}}, "providers": {"notes": {"trusted": True}}}
        file.write_text(json.dumps(told), encoding="utf-8")
        shared = {"home": tmp_path / "home", "toolbox": file, "policy": policy, "task_queue": queue}
        told = {f"BACKSTAY_{name.upper()}": str(value) for name, value in shared.items()}
        told |= {"BACKSTAY_APPROVER_KEY": KEY, "SSL_CERT_FILE": authority.trusted}
        environment = worker_environment(temporal, model, **told)
        settings = Settings.load(None, **shared, **behind_a_proxy())
        running = SimpleNamespace(client=temporal, settings=settings, issuer=issuer, notes=notes, authority=authority)
        first = await nursery.worker(environment, tmp_path / "first.log")
        await first.ready()
        async with served_page(running, url="https://page.example.com") as running.page:
            await sign_in(running)
            workflow_id = f"task-{uuid.uuid4()}"

            def revoked(conversation):
                issuer.forget(refresh=True)
                return call("write", text="after")

            task = {**SCRIPTS.task(call("write", text="before"), revoked, finish()), "user_id": ANA}
            signed = signing.signed_start(temporal, workflow_id, {**task, "by": ANA}, key=KEY)
            options = {"id": workflow_id, "task_queue": queue}
            handle = await temporal.start_workflow("RunTask", signed, **options)
            (request,) = await pending(handle)
            assert request["calls"][0]["tool"] == "notes.write"
            async with running.page.person(ANA) as person:
                await listed(person, workflow_id)
            first.kill()
            second = await nursery.worker(environment, tmp_path / "second.log")
            await second.ready()
            answer = await sign_in(running)
            assert answer.status_code == 303
            result = await ended(handle)
        assert result["outcome"] == "completed"
        assert [text for _, text in notes.written] == ["before", "after"]
        await second.end()


@promise("connections:own-servers-once")
@pytest.mark.thorough
async def test_a_call_of_a_users_own_server_is_made_once_when_its_worker_is_killed_amid_it(
    authority, temporal, nursery, tmp_path
):
    file, home, queue = tmp_path / "toolbox.json", tmp_path / "home", f"queue-{uuid.uuid4()}"
    async with crm(authority) as found, ScriptedModel(SCRIPTS) as model:
        file.write_text(json.dumps({"users_servers": {"hosts": [urlsplit(found.url).netloc]}}), encoding="utf-8")
        shared = {"home": home, "toolbox": file, "task_queue": queue}
        told = {f"BACKSTAY_{name.upper()}": str(value) for name, value in shared.items()}
        told |= {"BACKSTAY_APPROVER_KEY": KEY, "SSL_CERT_FILE": authority.trusted}
        environment = worker_environment(temporal, model, **told)
        first = await nursery.worker(environment, tmp_path / "first.log")
        await first.ready()
        async with open_store(database_url=None, home=home, encryption_keys=[]) as store:
            registry = UserServerRegistry(load(file, {})[0].users_servers, store.own_servers)
            added = await registry.add(ANA, "crm", found.url, {"X-Key": CRM_KEY}.items())
            writing = [Reply(calls=[(f"{added.provider}__write", {"text": text})]) for text in ("lost", "removed")]
            workflow_id = f"task-{uuid.uuid4()}"
            task = {**SCRIPTS.task(*writing, finish()), "user_id": ANA, "by": ANA}
            signed = signing.signed_start(temporal, workflow_id, task, key=KEY)
            handle = await temporal.start_workflow("RunTask", signed, id=workflow_id, task_queue=queue)
            found.answers.clear()
            await decided(handle)
            async with asyncio.timeout(60):
                while not found.written:
                    await asyncio.sleep(0.05)
            first.kill()
            found.answers.set()
            second = await nursery.worker(environment, tmp_path / "second.log")
            await second.ready()
            assert (await decided(handle, "happened"))["kind"] == "outcome"
            (request,) = await pending(handle)
            assert await registry.remove(ANA, "crm") == added.provider
            await decided(handle)
            result = await ended(handle)
    assert (request["kind"], result["outcome"]) == ("call", "completed")
    assert found.written == ["lost"]
    await second.end()


async def decided(handle, verdict="approve"):
    (request,) = await pending(handle)
    said = {"request_id": request["id"], "verdict": verdict, "by": ANA}
    await handle.execute_update("decide", await signing.signed(handle, said, key=KEY))
    return request
