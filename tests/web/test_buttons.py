"""Every button and field of the page in a browser: the run does what is pressed there, and asks only what is left."""

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.engine import PLANS, Scripts, ended, engine, pending, share_images
from tests.requirements import promise
from tests.web.pages import ANA, behind_a_proxy, in_view, mail, opened, press, served_page, told, until_listed, verdicts

POLICY = f"""
groups: {{"@ops": ["{ANA}"]}}
default: {{read_only: allow, write_safe: ask, restricted_write: ask}}
accepting: {{approvers: ["@ops"]}}
"""


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder, scripts = tmp_path_factory.mktemp("buttons"), Scripts()
        given = {"policy": POLICY, "profiles": PLANS, **behind_a_proxy()}
        running = await stack.enter_async_context(engine(temporal, folder, scripts, **given))
        yield running, scripts, await stack.enter_async_context(served_page(running))


def heard(running, task):
    """Return all that the model was told last in the run of a task."""
    asked = [each["messages"] for each in running.model.requests if task["text"] in str(each["messages"][1])]
    return len(asked), str(asked[-1])


async def is_asked(running, task):
    """Have a run ask, and leave it."""
    handle = await running.start(task)
    assert len(await pending(handle)) == 1
    await handle.terminate()


async def is_not_asked(running, task):
    """Have a run make its calls without asking; return what it came to."""
    result = await ended(await running.start(task))
    assert verdicts(result) == []
    return result


@promise("page:buttons")
async def test_to_reject_and_stop_ends_the_run_and_the_model_is_not_asked_again(browser, shared):
    running, scripts, served = shared
    task = scripts.task(mail("a@stop.example"), mail("b@stop.example"))
    handle = await running.start(task)
    async with opened(browser, served, handle) as page:
        await page.get_by_label("Comment").fill("enough for today")
        await press(page, "Reject and stop the run")
        await told(page, f"decided: rejected by {ANA}")
    result = await ended(handle)
    assert (result["outcome"], verdicts(result)) == ("rejected", [(ANA, "reject", True)])
    assert "enough for today" in result["error"]["message"]
    assert heard(running, task)[0] == 1


@promise("page:reject-always")
@pytest.mark.parametrize(
    ("arguments", "further"),
    [
        pytest.param("these", is_asked, id="these-arguments", marks=pytest.mark.thorough),
        pytest.param("any", is_not_asked, id="any-arguments"),
    ],
)
async def test_what_is_rejected_always_is_not_asked_again_and_not_done(browser, shared, arguments, further):
    running, scripts, served = shared
    user = {"user_id": f"never-{arguments}"}
    task = scripts.task(mail("a@never.example"), mail("a@never.example"), **user)
    handle = await running.start(task)
    async with opened(browser, served, handle) as page:
        await page.get_by_label("With").select_option(arguments)
        await press(page, "Reject always")
        await told(page, "remembered for every run of this user: mail.send_email")
    assert verdicts(await ended(handle)) == [(ANA, "reject", True)]
    assert f"never: mail.send_email by {ANA}" in heard(running, task)[1]
    await is_not_asked(running, scripts.task(mail("a@never.example"), **user))
    await further(running, scripts.task(mail("other@never.example"), **user))
    await is_asked(running, scripts.task(mail("a@never.example"), user_id="another"))
    assert not [to for to in running.mailbox.sent() if to.endswith("@never.example")]


@promise("page:always")
@pytest.mark.thorough
async def test_what_is_remembered_for_a_session_holds_there_for_the_very_same_arguments(browser, shared):
    running, scripts, served = shared
    session = {"user_id": "of-sessions", "session_id": "one"}
    handle = await running.start(scripts.task(mail("a@session.example"), **session))
    async with opened(browser, served, handle) as page:
        await page.get_by_label("Approve such calls from now on").select_option(label="in this session")
        await page.get_by_label("With").select_option(label="exactly the same arguments")
        await press(page, "Approve")
        await told(page, "remembered for this session: mail.send_email")
    assert verdicts(await ended(handle)) == [(ANA, "approve", True)]
    await is_not_asked(running, scripts.task(mail("a@session.example"), **session))
    await is_asked(running, scripts.task(mail("b@session.example"), **session))
    await is_asked(running, scripts.task(mail("a@session.example"), **session | {"session_id": "two"}))
    assert running.mailbox.sent().count("a@session.example") == 2


@promise("page:alike")
@pytest.mark.thorough
async def test_such_calls_are_told_with_their_bounds_and_hold_for_any_text_and_no_other_place(browser, shared):
    running, scripts, served = shared
    user = {"user_id": "of-alike"}
    handle = await running.start(scripts.task(mail("a@alike.example"), **user))
    such = 'arguments where to is "a@alike.example", from model; any text as body, subject; no other argument'
    async with opened(browser, served, handle) as page:
        await page.get_by_label("Approve such calls from now on").select_option(label="in every run of this user")
        await page.get_by_label("With").select_option(label=such)
        await press(page, "Approve")
        await told(page, "remembered for every run of this user: mail.send_email")
    await ended(handle)
    call = ("mail__send_email", {"to": "a@alike.example", "subject": "another", "body": "text"})
    await is_not_asked(running, scripts.task(Reply(calls=[call]), **user))
    await is_asked(running, scripts.task(mail("b@alike.example"), **user))


@promise("page:always")
async def test_what_is_remembered_always_holds_in_every_run_of_the_user_for_any_arguments(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("a@always.example"), user_id="of-always"))
    async with opened(browser, served, handle) as page:
        await page.get_by_label("Approve such calls from now on").select_option(label="in every run of this user")
        await page.get_by_label("With").select_option(label="any arguments")
        await press(page, "Approve")
        await told(page, "remembered for every run of this user: mail.send_email")
    assert verdicts(await ended(handle)) == [(ANA, "approve", True)]
    await is_not_asked(running, scripts.task(mail("b@always.example"), user_id="of-always"))
    await is_asked(running, scripts.task(mail("a@always.example"), user_id="another"))
    assert [to for to in running.mailbox.sent() if to.endswith("always.example")] == [
        "a@always.example",
        "b@always.example",
    ]


@promise("page:inbox")
async def test_the_ticked_of_equal_calls_are_rejected_with_one_comment_and_the_others_wait(browser, shared):
    running, scripts, served = shared
    tasks = [scripts.task(mail("same@tick.example")) for _ in range(3)]
    handles = []
    # Each asks after the one before, so that the list shows them in this order.
    for task in tasks:
        handles.append(await running.start(task))
        await pending(handles[-1])
    async with opened(browser, served, handles[0]) as page:
        for handle in handles:
            await until_listed(page, served, handle)
        await page.get_by_role("link", name="decide 3 equal calls at once").first.click()
        await page.set_viewport_size({"width": 1280, "height": 300})
        assert [await in_view(page, f"{verdict} the ticked") for verdict in ("Approve", "Reject")] == [True, True]
        for name, ticked in (("Tick none", 0), ("Tick all", 3)):
            await press(page, name)
            assert await page.locator("input[name=pick]:checked").count() == ticked
        await page.get_by_role("checkbox").first.uncheck()
        await page.get_by_label("Comment").fill("not in May")
        await press(page, "Reject the ticked")
        await page.get_by_role("heading", name="2 of 2 requests rejected").wait_for()
        for place, row in (("decided", "a.open"), (f"runs/{handles[0].id}", ".asks-what")):
            await page.goto(f"{served.url}/{place}")
            assert await page.locator(row).first.inner_text() == "mail.send_email to same@tick.example"
    assert len(await pending(handles[0])) == 1
    assert [verdicts(await ended(handle)) for handle in handles[1:]] == [[(ANA, "reject", True)]] * 2
    assert ["not in May" in heard(running, task)[1] for task in tasks] == [False, True, True]
    assert "same@tick.example" not in running.mailbox.sent()
    await handles[0].terminate()


def proposing(*steps, **more):
    listed = [{"tool": tool, "arguments": arguments, **more} for tool, arguments in steps]
    return Reply(calls=[("propose_plan", {"plan": {"title": "letters", "steps": listed}})])


@promise("page:plan-parts")
@pytest.mark.thorough
async def test_of_a_plan_of_which_only_a_dry_run_is_approved_nothing_is_made(browser, shared):
    running, scripts, served = shared
    step = ("mail.send_email", {"to": "a@dry.example", "subject": "s", "body": "b"})
    task = scripts.task(proposing(step))
    handle = await running.start(task)
    async with opened(browser, served, handle) as page:
        await press(page, "Approve a dry run only")
        await told(page, f"decided: approved by {ANA}")
    result = await ended(handle)
    assert (result["outcome"], verdicts(result)) == ("completed", [(ANA, "approve", True)])
    assert [(step["status"], step["reason"]) for step in (await handle.query("plan"))["steps"]] == [
        ("pending", "dry_run")
    ]
    assert '"dry_run":true' in heard(running, task)[1].replace("\\", "")
    assert "a@dry.example" not in running.mailbox.sent()


@pytest.fixture
def rooms():
    """A folder that the users of jails can reach."""
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        Path(folder).chmod(0o755)
        room = Path(folder) / "rooms" / "letters"
        room.mkdir(parents=True)
        yield room


@promise("page:less-time")
@pytest.mark.thorough
async def test_a_plan_that_is_approved_without_processes_goes_on_without_its_commands(
    browser, temporal, tmp_path, rooms
):
    share_images(tmp_path / "home")
    toolbox = tmp_path / "toolbox.json"
    toolbox.write_text("{}", encoding="utf-8")
    given = {"policy": POLICY, "profiles": PLANS, "toolbox": toolbox, "workspaces": rooms.parent, **behind_a_proxy()}
    async with engine(temporal, tmp_path, Scripts(), **given) as running, served_page(running) as served:
        steps = [
            {"tool": "shell.run", "arguments": {"command": "touch ran"}},
            {"tool": "fs.write_file", "arguments": {"path": "kept", "content": "k"}},
            {"tool": "fs.write_file", "arguments": {"path": "told", "content": "${steps.0.result.stdout}"}},
        ]
        task = {"plan": {"title": "files", "steps": steps}, "filesystem": True, "shell": True}
        handle = await running.start({**task, "workspace": "letters"})
        async with opened(browser, served, handle) as page:
            await page.get_by_text("if it is left out, step 2 is not made either").wait_for()
            processes = "without starting processes: step 0 starts processes; without them step 2 is not made either"
            await page.get_by_label(processes).check()
            await page.get_by_label("Megabytes of memory for a step, at most 2048").fill("256")
            await press(page, "Approve the plan")
            await told(page, f"decided: approved by {ANA}")
        result = await ended(handle)
        assert (result["outcome"], verdicts(result)) == ("completed", [(ANA, "approve", True)])
        refused, made, fallen = (await handle.query("plan"))["steps"]
    assert (refused["reason"], made["status"], fallen["reason"]) == ("rejected", "success", "dependency_failed")
    assert f"{ANA} lets the plan start no processes" in refused["error"]
    assert [path.name for path in rooms.iterdir()] == ["kept"]


@promise("page:less-time")
async def test_a_step_that_needs_more_time_than_was_typed_is_ended(browser, temporal, tmp_path):
    given = {"env": {"MAILBOX_SLOW_SECONDS": "20"}, "policy": POLICY, **behind_a_proxy()}
    async with engine(temporal, tmp_path, Scripts(), **given) as running, served_page(running) as served:
        steps = [
            {"tool": "mail.list_customers", "arguments": {}},
            {"tool": "mail.send_email", "arguments": {"to": "a@late.example", "subject": "s", "body": "b"}},
        ]
        handle = await running.start({"plan": {"title": "letters", "steps": steps}})
        async with opened(browser, served, handle) as page:
            seconds = page.get_by_label("Seconds that a step may take, at most 30")
            await seconds.fill("31")
            await press(page, "Approve the plan")
            await page.get_by_role("alert").filter(has_text="toggles.limits.timeout_s").wait_for()
            assert await seconds.input_value() == "31"
            await seconds.fill("1.5")
            await press(page, "Approve the plan")
            await told(page, f"decided: approved by {ANA}")
        result = await ended(handle)
        assert (result["outcome"], verdicts(result)) == ("failed", [(ANA, "approve", True)])
        assert "no answer within 1.5 s" in result["error"]["message"]
        assert running.mailbox.requests("send_email") == 0
