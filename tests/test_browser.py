"""The browser that looks at our pages: what it holds against a page, and that it reaches only this machine."""

import socket
import subprocess
from pathlib import Path

import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from docs.browser import MISSING, chromium
from tests.browser import assert_accessible, assert_fits, picture, violations
from tests.requirements import promise
from tests.serving import served

HOUSE = Path(__file__).resolve().parents[1]
PLAIN = """<!doctype html>
<html lang="en"><head><title>Requests</title><meta name="viewport" content="width=device-width">
<style>@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: #eee }} }}</style></head>
<body><main><h1>Requests</h1><p id="said">nothing</p>{}</main></body></html>"""
PAGES = {
    "plain": PLAIN.format("<script>said.textContent = 'a script ran'</script>"),
    "wide": PLAIN.format("<div style='width: 900px'>wide</div>"),
    "unnamed": PLAIN.format("<button></button><img src='data:,'>"),
    "foreign": PLAIN.format("<img alt='' src='http://backstay.example/x.png'>"),
    "failing": PLAIN.format("<script>no.such.thing()</script>"),
    "strict": PLAIN.format("<script>said.textContent = 'a script ran'</script>"),
}


@pytest_asyncio.fixture
async def url():
    async def page(request):
        name = request.path_params["name"]
        policy = {"Content-Security-Policy": "default-src 'none'"} if name == "strict" else {}
        return HTMLResponse(PAGES.get(name, ""), headers=policy)

    async with served(Starlette(routes=[Route("/{name}", page)])) as address:
        yield address


@promise("clients:browser")
async def test_a_tab_shows_a_page_as_people_see_it_with_and_without_scripts_in_the_dark_and_on_a_phone(
    browser, url, tmp_path
):
    async with browser.tab(f"{url}/plain") as page:
        assert await page.locator("#said").inner_text() == "a script ran"
        await assert_accessible(page)
        light = await picture(page, tmp_path / "pictures/light.png")
    async with browser.tab(f"{url}/plain", scripts=False) as page:
        assert await page.locator("#said").inner_text() == "nothing"
    async with browser.tab(f"{url}/plain", dark=True) as page:
        assert await picture(page, tmp_path / "dark.png") != light
    async with browser.tab(f"{url}/plain", phone=True) as page:
        await assert_fits(page)
        await page.goto(f"{url}/wide")
        with pytest.raises(AssertionError, match="908 points wide, and there is room for 375"):
            await assert_fits(page)
    async with browser.tab(f"{url}/unnamed") as page:
        assert {each.split(":")[1].strip() for each in await violations(page)} >= {"button-name", "image-alt"}
        with pytest.raises(AssertionError, match="critical: button-name"):
            await assert_accessible(page)


@promise("clients:browser-strict")
async def test_a_page_that_reaches_out_or_whose_scripts_fail_or_are_blocked_fails_its_test(browser, url):
    # An address of this machine that is not the one of the tests stands for all that is beyond it.
    with socket.create_server(("127.0.0.2", 0)) as beyond:
        beyond.setblocking(False)
        target = f"http://127.0.0.2:{beyond.getsockname()[1]}"

        async def reach_out():
            async with browser.tab(f"{url}/plain") as page:
                reached = f"fetch('{target}', {{mode: 'no-cors'}}).then(() => 'reached', () => 'refused')"
                assert await page.evaluate(reached) == "refused"

        with pytest.raises(AssertionError, match=r"reached out to .*127\.0\.0\.2"):
            await reach_out()
        with pytest.raises(BlockingIOError):
            beyond.accept()
    for name, said in {
        "foreign": r"reached out to .*backstay\.example",
        "failing": "no is not defined",
        "strict": "Content Security Policy",
    }.items():
        with pytest.raises(AssertionError, match=said):
            async with browser.tab(f"{url}/{name}"):
                pass
    # What is put in from outside works all the same, and the page's own policy stays.
    async with browser.tab(f"{url}/strict", may_fail=True) as page:
        await assert_accessible(page)
        assert await page.locator("#said").inner_text() == "nothing"


@promise("clients:browser-missing")
def test_a_missing_browser_is_said_with_what_to_do(monkeypatch):
    monkeypatch.setenv("PATH", "/no/such/folder")
    with pytest.raises(FileNotFoundError, match=MISSING):
        chromium()


@promise("clients:browser-installed")
def test_make_installs_the_small_browser_or_takes_one_that_is_there_and_says_what_is_missing(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()

    def makes(**programs):
        for each in tools.iterdir():
            each.unlink()
        for name in ("bash", "sh", "make", "mkdir", "touch", "grep"):
            (tools / name).symlink_to(f"/usr/bin/{name}")
        for name, lines in programs.items():
            (tools / name.replace("_", "-")).write_text(f"#!/bin/bash\n{lines}\n")
            (tools / name.replace("_", "-")).chmod(0o755)
        stamp = tmp_path / f"stamp-{len(list(tmp_path.iterdir()))}"
        command = ("make", "-s", f"BROWSER={stamp}", str(stamp))
        environment = {"PATH": str(tools)}
        done = subprocess.run(command, cwd=HOUSE, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr, stamp.exists()

    called = tmp_path / "called"
    apt = f'echo "$@" >> {called}'
    assert makes(chromium_headless_shell="", apt_get=apt, id="echo 0") == (0, "", True)
    assert not called.exists()
    assert makes(apt_get=apt, id="echo 0")[::2] == (0, True)
    assert "install -y -qq --no-install-recommends chromium-headless-shell" in called.read_text()
    assert makes(chromium="", apt_get="exit 100", id="echo 0")[::2] == (0, True)
    assert makes(chromium="", apt_get=apt, id="echo 1000") == (0, "", True)
    for programs in ({"apt_get": apt, "id": "echo 1000"}, {"apt_get": "exit 100", "id": "echo 0"}):
        code, said, stamped = makes(**programs)
        assert (code != 0, "as root, run: apt-get install chromium" in said, stamped) == (True, True, False)
    code, said, stamped = makes(id="echo 0")
    assert (code != 0, "chromium is missing; install it" in said, stamped) == (True, True, False)
