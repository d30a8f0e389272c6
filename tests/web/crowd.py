"""Many open requests, three approvers who double-click, two page processes, and one of them killed amid it."""

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import httpx2

import opening
from backstay.testing import Reply
from benchmarks.inbox import fill
from tests.cli.commands import environment_of
from tests.engine import Scripts, ended
from tests.web.pages import KEY, PROXY, SECRET, form_of, headers

PEOPLE = {"ana@example.com": "approve", "bo@example.com": "reject", "cy@example.com": "approve"}
AT_ONCE = 3
"""How many requests each person has open at the same time."""
ANSWERED_S = 90


@dataclass
class Crowd:
    """Hold what happened."""

    decided: dict[str, list[str]] = field(default_factory=dict)
    """By run: whom the page told that they have decided it."""
    answers: Counter[int] = field(default_factory=Counter)
    clicks: int = 0
    lost: int = 0
    """Clicks whose answer was lost with the process, and which were made again at the other one."""


def letter(number):
    return Reply(calls=[("mail__send_email", {"to": f"k{number}@x.example", "subject": str(number), "body": "b"})])


def settings():
    return {"web_identity": "header", "web_proxy_secret": PROXY, "web_secret": SECRET, "approver_key": KEY}


@asynccontextmanager
async def page_process(running, folder):
    """Serve the page in a process of its own; yields it and its address."""
    environment = environment_of(
        running,
        BACKSTAY_WEB_IDENTITY="header",
        BACKSTAY_WEB_PROXY_SECRET=PROXY,
        BACKSTAY_WEB_SECRET=SECRET,
        BACKSTAY_APPROVER_KEY=KEY,
    )
    log = await asyncio.to_thread((folder / f"page-{random.random()}.log").open, "wb+")
    command = (sys.executable, "-m", "backstay", "web", "--port", "0")
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd=folder, stderr=log, stdout=log, start_new_session=True
    )
    try:
        async with asyncio.timeout(150):
            while b"backstay web ready: " not in (said := await asyncio.to_thread(_read, log.name)):
                assert process.returncode is None, said
                await asyncio.sleep(0.1)
        yield process, said.split(b"backstay web ready: ")[1].split()[0].decode()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 150)
        log.close()


def _read(name):
    with open(name, "rb") as opened:  # noqa: PTH123 - it runs in a thread
        return opened.read()


async def decide_all(crowd, runs, urls, by, on_decided):
    """Look at every run in an order of one's own, and double-click; at whichever page process lives."""
    order, bounded = random.Random(by).sample(runs, len(runs)), asyncio.Semaphore(AT_ONCE)

    async with AsyncExitStack() as stack:
        pages = [
            await stack.enter_async_context(httpx2.AsyncClient(base_url=url, headers=headers(by), timeout=ANSWERED_S))
            for url in urls
        ]

        async def look(number, name):
            async with bounded:
                await _double_click(crowd, pages if number % 2 else pages[::-1], by, name)
                on_decided()

        await asyncio.gather(*(look(number, name) for number, name in enumerate(order)))


async def _double_click(crowd, pages, by, name):
    path, verdict = f"/requests/{name}/r1", PEOPLE[by]
    shown = await _through(crowd, pages, lambda page: page.get(path))
    if 'id="decide"' not in shown.text:
        return  # somebody else was faster, and the page says so
    form = form_of(shown.text, verdict=verdict)
    clicks = [_through(crowd, pages, lambda page: page.post(f"{path}/decide", data=form)) for _ in range(2)]
    for answer in await asyncio.gather(*clicks):
        crowd.clicks += 1
        crowd.answers[answer.status_code] += 1
        if answer.status_code == 303:
            crowd.decided.setdefault(name, []).append(by)


async def _through(crowd, pages, send):
    """Send to a page process, and to the other when it dies before it has answered."""
    async with asyncio.timeout(ANSWERED_S):
        for page in pages * 20:
            try:
                answer = await send(page)
            except httpx2.TransportError:
                crowd.lost += 1
                await asyncio.sleep(0.05)
                continue
            if answer.status_code != 503:
                return answer
            await asyncio.sleep(0.2)
    raise AssertionError("no page process answers")


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)


async def crowded(open_engine, folder, runs, decided):
    """Let the crowd decide so many runs beside so many decided rows; return what happened, and the mailbox."""
    scripts, crowd = Scripts(), Crowd()
    async with open_engine(scripts, folder=folder, policy="", cached=1000, **settings()) as running:
        async with opening.open_store(running.settings) as store:
            await fill(store, opened=0, decided=decided)
            handles = [await running.start(scripts.task(letter(number)), f"crowd-{number}") for number in range(runs)]
            async with asyncio.timeout(60 + runs):
                while await store.requests.count_open() < runs:
                    await asyncio.sleep(0.2)
        async with page_process(running, folder) as (_, one_url), page_process(running, folder) as (victim, other_url):
            left = runs * len(PEOPLE) // 3

            def on_decided():
                nonlocal left
                left -= 1
                if left == 0:
                    kill(victim)

            urls, names = [one_url, other_url], [handle.id for handle in handles]
            await asyncio.gather(*(decide_all(crowd, names, urls, by, on_decided) for by in PEOPLE))
            assert victim.returncode is not None or await asyncio.wait_for(victim.wait(), 150)
        results = [await ended(handle, 120) for handle in handles]
        return crowd, results, running.mailbox.rows("SELECT subject, count(*) FROM sent GROUP BY subject")


def verdicts(result):
    decided = [event["data"] for event in result["events"] if event["name"] == "approval.decided"]
    return [(data["by"], data["verdict"], data["verified"]) for data in decided]


def assert_none_lost_and_none_twice(crowd, results, sent):
    """Every run was decided once, by the one whom the page told so, and did what that person said, once."""
    for result in results:
        ((by, verdict, verified),) = verdicts(result)
        assert (PEOPLE[by], verified) == (verdict, True)
        assert set(crowd.decided[result["workflow_id"]]) == {by}
    approved = {result["workflow_id"].rpartition("-")[2] for result in results if verdicts(result)[0][1] == "approve"}
    assert dict(sent) == dict.fromkeys(approved, 1)
    assert set(crowd.answers) <= {303, 409}
    assert crowd.clicks > 2 * len(results)
