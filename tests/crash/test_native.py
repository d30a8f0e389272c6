"""A worker dies amid a run by a native API: the next one gives back what was signed, and nothing is sent twice."""

import asyncio

import pytest
import pytest_asyncio
import yaml

from tests.crash.case import open_case
from tests.engine import assert_no_task_failure
from tests.native_apis import KEY, MODELS, Says, Vendor
from tests.requirements import promise
from tests.sizes import spread
from tests.together import started, together

PRICE = {"input": 1.0, "cached": 0.1, "cache_write": 1.25, "output": 4.0}
SEND = ("mail__send_email", {"to": "ana@example.com", "subject": "s", "body": "b"})


@pytest_asyncio.fixture(scope="module")
async def underway(request, temporal, nursery, tmp_path_factory):
    async with started(
        request, lambda scenario: scenario(temporal, nursery, tmp_path_factory.mktemp("native"))
    ) as running:
        yield running


def script(answered, body):
    steps = [
        Says("I look.", (("mail__list_customers", {"limit": 1}),), "thought 0"),
        Says("I send.", (SEND,), "thought 1"),
        Says("", (("finish", {"summary": "done", "success": True}),), "thought 2"),
    ]
    return steps[answered]


@promise("models:fallback-kill")
@pytest.mark.thorough
@pytest.mark.parametrize("api", spread(list(MODELS), 1))
@together
async def test_a_worker_that_dies_amid_a_run_by_a_native_api_is_replaced(temporal, nursery, tmp_path, *, api):
    policy, models = tmp_path / "policy.yaml", tmp_path / "models.yaml"
    policy.write_text("default: {read_only: allow, write_safe: allow, restricted_write: allow}", encoding="utf-8")
    async with Vendor(api, script).open() as vendor:
        said = {
            "endpoints": {"native": {"base_url": vendor.base_url, "key": "${NATIVE_KEY}", "api": api}},
            "models": {"main": {"endpoint": "native", "model": MODELS[api], "price": PRICE}},
        }
        models.write_text(yaml.safe_dump(said), encoding="utf-8")
        settings = {"BACKSTAY_POLICY": str(policy), "BACKSTAY_MODELS": str(models), "BACKSTAY_MODEL": "main"}
        settings["NATIVE_KEY"] = KEY
        async with open_case(temporal, nursery, tmp_path / "case", rules=[], **settings) as case:
            doomed = await case.worker("before:model.request:2")
            run = await case.start()
            async with asyncio.timeout(150):
                assert await asyncio.shield(doomed.died) == -9, doomed.said()
            await case.worker()
            async with asyncio.timeout(150):
                result = await case.person.attend(run)
            assert_no_task_failure(await run.fetch_history())
            assert (result["outcome"], vendor.refused) == ("completed", [])
            assert case.mailbox.sent() == ["ana@example.com"]
            assert result["usage"]["models"]["main"]["calls"] == 3
