"""An approval from the page and one from the terminal, traced: both pass the same functions of `people`."""

import sys
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import people
from backstay.approvals.approval import ApprovalRequest
from backstay.client import connect
from backstay.testing import Reply
from gateways.terminal.asking.prompt import Prompt
from gateways.terminal.terminal import Terminal
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.web.pages import KEY, behind_a_proxy, form_of, listed, served_page, verdicts

ANA = "ana@example.com"
FOLDER = str(Path(people.__file__).parent)
PATH = ("DecisionForm.of", "decision_of", "_approval", "decide", "require_same", "_bound")


class Typist(Terminal):
    """A terminal at which somebody types these lines."""

    def __init__(self, *lines):
        super().__init__()
        self.lines = list(lines)

    async def ask(self, question, before=()):
        return self.lines.pop(0)


@contextmanager
def traced():
    """Collect which functions of `people` are entered, in order."""
    entered = []

    def watch(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(FOLDER):
            entered.append(frame.f_code.co_qualname)

    sys.setprofile(watch)
    try:
        yield entered
    finally:
        sys.setprofile(None)


@promise("approvals:one-path")
async def test_an_approval_from_the_page_and_one_from_the_terminal_pass_the_same_functions(temporal, tmp_path):
    scripts = Scripts()
    send = {"to": "kim@x.example", "subject": "s", "body": "b"}
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(engine(temporal, tmp_path, scripts, **behind_a_proxy()))
        served = await stack.enter_async_context(served_page(running))
        person = await stack.enter_async_context(served.person(ANA))
        backstay = await stack.enter_async_context(connect(client=running.client, approver_key=KEY))
        paths = {}
        for door in ("page", "terminal"):
            handle = await running.start(scripts.task(Reply(calls=[("mail__send_email", send)])))
            (request,) = await pending(handle)
            if door == "page":
                await listed(person, handle.id)
                path = f"/requests/{handle.id}/{request['id']}"
                form = form_of((await person.get(path)).text, verdict="approve")
                with traced() as entered:
                    assert (await person.post(f"{path}/decide", data=form)).status_code == 303
            else:
                prompt = Prompt(Typist("a"), backstay.run(handle.id), running.settings, by=ANA, editor=None)
                with traced() as entered:
                    assert await prompt.decide(ApprovalRequest.model_validate(request))
            paths[door] = [name for name in dict.fromkeys(reversed(entered)) if name in PATH][::-1]
            assert verdicts(await ended(handle)) == [(ANA, "approve", True)]

    assert paths["page"] == paths["terminal"]
    assert set(paths["page"]) == set(PATH)
