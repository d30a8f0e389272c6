"""One engine for all commands of a module, with a worker that keeps its workflows in memory as in production.

A worker that keeps none evicts a run after each task, and a question that comes in just then may be lost for the ten
seconds after which the server asks anew; commands ask all the time.
"""

from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

import opening
import worker
from backstay.settings import Settings
from backstay.testing import ScriptedModel
from examples.mailbox.faults import Faults
from tests.engine import PLANS, PRICES, Engine, Mailbox, Scripts, share_images, toolbox_of
from tests.mailbox_server import open_mailbox

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow: [{tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}]
"""


@pytest_asyncio.fixture(scope="module")
async def _opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "profiles.yaml").write_text(PLANS, encoding="utf-8")
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        model = await stack.enter_async_context(ScriptedModel(scripts))
        # Commands look at the same mailbox; one that each of them started would take most of its time.
        address = await stack.enter_async_context(open_mailbox(folder / "mailbox.db", Faults()))
        settings = Settings.load(
            None,
            home=share_images(folder / "home"),
            toolbox=toolbox_of(folder, folder / "mailbox.db", address=address),
            policy=folder / "policy.yaml",
            profiles=folder / "profiles.yaml",
            model="scripted",
            openai_base_url=model.base_url,
            prices=PRICES,
            max_steps_per_plan=130,
            task_queue=f"queue-of-{folder.name}",
        )
        resources = await stack.enter_async_context(opening.open_resources(settings, temporal))
        await stack.enter_async_context(worker.open_worker(temporal, resources))
        yield Engine(temporal, settings, Mailbox(folder / "mailbox.db"), model), scripts


@pytest.fixture
def opened(_opened):
    return _opened[0]


@pytest.fixture
def scripts(_opened):
    return _opened[1]
