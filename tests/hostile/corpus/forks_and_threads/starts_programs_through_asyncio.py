# holds: nothing_left, no_breach
# ends: any
import asyncio


async def main():
    for start in (
        lambda: asyncio.create_subprocess_exec("/usr/bin/python3", "-c", "import signal; signal.pause()"),
        lambda: asyncio.create_subprocess_shell("sleep 1000"),
    ):
        try:
            await start()
            proved("started")
        except Exception as error:
            print(type(error).__name__, error)
    return "tried"
