"""The smallest client: start a run, follow it, print its result. python starter.py "TEXT"."""

import asyncio
import sys

from backstay import BackstayError, connect


async def main(text: str) -> int:
    """Start, follow and print; what the run asks is decided with `backstay approve`."""
    async with connect() as backstay:
        run = await backstay.start(text)
        sys.stderr.write(f"run {run.id}\n")
        async for event in run.events():
            sys.stderr.write(f"{event.name}: {event.text}\n")
            if event.name == "approval.asked":
                request = event.data.get("request")
                sys.stderr.write(f"    backstay approve {run.id} {request} --by YOU\n")
                sys.stderr.write(f"    backstay reject {run.id} {request} --by YOU\n")
        result = await run.result()
    sys.stdout.write(f"{result.final_summary}\n")
    return 0 if result.success else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit('usage: python starter.py "TEXT"')
    try:
        sys.exit(asyncio.run(main(sys.argv[1])))
    except BackstayError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
