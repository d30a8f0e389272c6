"""A headless Chromium, driven through its debugging pipe: open a page, wait for a text, take a picture."""

import asyncio
import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
WAIT_S = 30


class Browser:
    """Speak the DevTools protocol over two pipes."""

    def __init__(self, reader: asyncio.StreamReader, writing: int) -> None:
        """Read answers from `reader`; write commands to the file descriptor `writing`."""
        self._reader = reader
        self._writing = writing
        self._ids = itertools.count(1)

    async def tell(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        number = next(self._ids)
        command = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._writing, json.dumps(command).encode() + b"\0")
        while True:
            message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    async def picture(self, address: str, path: Path, *, width: int, height: int, until: str, click: str = "") -> None:
        """Open a page, click the link of that name if one is named, wait for a text, and save a picture."""
        target = await self.tell("Target.createTarget", url="about:blank")
        session = (await self.tell("Target.attachToTarget", targetId=target["targetId"], flatten=True))["sessionId"]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.tell("Emulation.setDeviceMetricsOverride", session, **size)
        await self.tell("Page.enable", session)
        await self.tell("Page.navigate", session, url=address)
        async with asyncio.timeout(WAIT_S):
            while click and not await self._clicked(session, click):
                await asyncio.sleep(0.3)
            while until not in await self._text(session):
                await asyncio.sleep(0.3)
        # The page goes on drawing for a moment after its text is there.
        await asyncio.sleep(1.5)
        shot = await self.tell("Page.captureScreenshot", session, format="png")
        path.write_bytes(base64.b64decode(shot["data"]))
        await self.tell("Target.closeTarget", targetId=target["targetId"])

    async def _clicked(self, session: str, name: str) -> bool:
        links = f"[...document.querySelectorAll('a')].find(a => a.innerText.trim() === {json.dumps(name)})"
        script = f"(() => {{ const link = {links}; if (link) link.click(); return !!link }})()"
        found = await self.tell("Runtime.evaluate", session, expression=script)
        return found["result"].get("value") is True

    async def _text(self, session: str) -> str:
        found = await self.tell("Runtime.evaluate", session, expression="document.body ? document.body.innerText : ''")
        return str(found["result"].get("value", ""))


@asynccontextmanager
async def open_browser() -> AsyncGenerator[Browser]:
    """Start a browser and end it with the block."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("chromium is missing; on Debian: apt install chromium")
    theirs_in, writing = os.pipe()
    reading, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:

        def hand_over() -> None:
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        started = subprocess.Popen(  # noqa: S603  # our own list; the two pipes must be descriptors 3 and 4
            [program, *FLAGS, f"--user-data-dir={profile}"],
            close_fds=False,
            preexec_fn=hand_over,  # noqa: PLW1509  # the two pipes must be descriptors 3 and 4
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
            await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb")
            )
            yield Browser(reader, writing)
        finally:
            started.terminate()
            started.wait(10)
