"""An approval from the page and one from the terminal, traced: both pass the same functions of `people`."""

import ast
import sys
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import people
from backstay.approvals.approval import ApprovalRequest
from backstay.client import connect
from backstay.testing import Reply
from gateways.terminal.asking.deciding import decided_by_name
from gateways.terminal.asking.prompt import Prompt
from gateways.terminal.terminal import Terminal
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.web.pages import KEY, behind_a_proxy, form_of, listed, served_page, verdicts

ANA = "ana@example.com"
FOLDER = str(Path(people.__file__).parent)
PATH = ("look", "decide", "require_same", "_bound", "DecisionForm.of", "decision_of", "_approval", "_event_id")
DOOR_OF_ITS_OWN = {"look": "the prompt has shown the request itself", "_event_id": "only a page can be sent twice"}
"""Functions that not every door enters, with the reason."""
HOUSE = Path(__file__).resolve().parents[3]
DECIDING = {"digest", "args_digest", "verdict", "authority", "expires_at"}
"""What only `people` and the run itself compare of a request."""
OTHERS = {
    "gateways/plugin_jobs": "jobs of plugins have digests of their own",
    "gateways/terminal/policies": "the operator looks at what a policy would rule",
    "gateways/terminal/policy.py": "lines of a policy",
    "gateways/terminal/tools.py": "definitions of tools are pinned by their digests",
}


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
        for door in ("page", "prompt", "command"):
            handle = await running.start(scripts.task(Reply(calls=[("mail__send_email", send)])))
            (request,) = await pending(handle)
            run = backstay.run(handle.id)
            if door == "page":
                await listed(person, handle.id)
                path = f"/requests/{handle.id}/{request['id']}"
                form = form_of((await person.get(path)).text, verdict="approve")
                with traced() as entered:
                    assert (await person.post(f"{path}/decide", data=form)).status_code == 303
            elif door == "prompt":
                prompt = Prompt(Typist("a"), run, running.settings, by=ANA, editor=None)
                with traced() as entered:
                    assert await prompt.decide(ApprovalRequest.model_validate(request))
            else:
                with traced() as entered:
                    await decided_by_name(run, request["id"], ANA, request["args_digest"], "approve")
            paths[door] = [name for name in dict.fromkeys(reversed(entered)) if name in PATH][::-1]
            assert verdicts(await ended(handle)) == [(ANA, "approve", True)]

    assert set(paths["page"]) == set(PATH)
    for path in paths.values():
        assert [name for name in paths["page"] if name in path] == path
        assert set(PATH) - set(path) <= DOOR_OF_ITS_OWN.keys()


def compared(node):
    """The names that a comparison compares."""
    operands = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    for operand in operands:
        for part in operand.elts if isinstance(operand, ast.Tuple | ast.Set | ast.List) else [operand]:
            match part:
                case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Subscript(slice=ast.Constant(value=name)):
                    yield name


@promise("approvals:one-path")
def test_no_gateway_compares_what_decides_about_a_request():
    places = [path.relative_to(HOUSE).as_posix() for path in sorted((HOUSE / "gateways").rglob("*.py"))]
    found = {
        (place, name)
        for place in places
        if not place.startswith(tuple(OTHERS))
        for node in ast.walk(ast.parse((HOUSE / place).read_text(encoding="utf-8")))
        for name in compared(node)
        if name in DECIDING
    }
    assert not found
    assert all(any(place.startswith(other) for place in places) for other in OTHERS)
