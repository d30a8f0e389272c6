"""Record one history per shape into tests/replay/histories; only ever add files, never replace one.

python -m tests.replay.record VERSION [SHAPE ...]
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from temporalio.testing import WorkflowEnvironment

from backstay.calls import DATA_CONVERTER
from sandbox.programs.opening import open_sandbox
from tests.conftest import KEYS
from tests.engine import ROOT, engine
from tests.replay.shapes import SHAPES, rules, toolbox

HISTORIES = Path(__file__).parent / "histories"


async def main(version: str, *wanted: str) -> None:
    binary = str(Path(sys.executable).parent / "temporal")
    async with await WorkflowEnvironment.start_local(
        data_converter=DATA_CONVERTER, dev_server_existing_path=binary, search_attributes=KEYS, identity="recorder"
    ) as environment:
        with tempfile.TemporaryDirectory() as folder:
            home = ROOT / "build" / "sandbox"
            async with (
                open_sandbox(nsjail=None, home=home, image="python") as sandbox,
                engine(
                    environment.client, Path(folder), rules, sandbox=sandbox, toolbox=toolbox(Path(folder))
                ) as opened,
            ):
                for name, play in SHAPES.items():
                    if wanted and name not in wanted:
                        continue
                    handle = await play(opened)
                    async with asyncio.timeout(60):
                        await handle.result()
                    path = HISTORIES / f"{version}-{name}.json"
                    if path.exists():
                        raise SystemExit(f"{path} exists; a kept history is never replaced")
                    path.write_text((await handle.fetch_history()).to_json() + "\n", encoding="utf-8")


if __name__ == "__main__":
    HISTORIES.mkdir(exist_ok=True)
    asyncio.run(main(*sys.argv[1:]))
