"""Checks of a workspace's code: what is planted is found, and what is hostile stays bounded."""

import asyncio
import os

import pytest

from tests.requirements import promise
from tests.sizes import spread

pytestmark = pytest.mark.timeout(400)

CLEAN = {
    "shop/__init__.py": "",
    "shop/orders.py": "def total(prices: list[int]) -> int:\n    return sum(prices)\n",
    "tests/test_orders.py": (
        "from shop.orders import total\n\n\ndef test_total() -> None:\n    assert total([1, 2]) == 3\n"
        "\n\ndef test_nothing() -> None:\n    assert total([]) == 0\n"
    ),
}


def fill(desk, files):
    for name, text in files.items():
        place = desk.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


async def checked(desk, name, *names, seconds=60):
    """Make one check; return what it found, or why it could not be made."""
    call = desk.call("check", writable=False, name=name, names=list(names or ([] if name == "import" else ["."])))
    said = await desk.workspaces.call(call.model_copy(update={"seconds": float(seconds)}))
    return said["ok"] if "ok" in said else said["error"]


@promise("plans:review")
@pytest.mark.thorough
async def test_a_clean_project_has_no_fault(desk):
    fill(desk, CLEAN)
    before = desk.held()
    found = {name: await checked(desk, name) for name in ("lint", "types", "import", "tests")}
    assert {
        name: (said["counted"] > 0, said["failed"], said["lines"]) for name, said in found.items()
    } == dict.fromkeys(found, (True, 0, []))
    assert found["tests"]["counted"] == 2
    assert desk.held() == before


FAULTS = [
    ("lint", "shop/orders.py", "import os\n", "shop/orders.py:1: F401"),
    ("lint", "shop/orders.py", "def broken()\n    return 1\n", "shop/orders.py:1: invalid-syntax"),
    (
        "types",
        "shop/orders.py",
        'def total(prices: list[int]) -> int:\n    return "3"\n',
        "shop/orders.py:2: Incomp",
    ),
    ("types", "shop/orders.py", "def broken()\n    return 1\n", "[syntax]"),
    ("import", "shop/__init__.py", "import not_there\n", "shop: ModuleNotFoundError"),
    ("import", "shop/__init__.py", "import os\nos._exit(0)\n", "shop: it ended without a word"),
    (
        "tests",
        "tests/test_orders.py",
        "def test_no():\n    assert 1 == 2\n",
        "tests/test_orders.py::test_no (call)",
    ),
    ("tests", "tests/test_orders.py", "import not_there\n", "tests/test_orders.py (cannot be collected)"),
]


@promise("plans:review")
@pytest.mark.parametrize(("name", "file", "text", "told"), spread(FAULTS, 2))
async def test_a_planted_fault_is_found(desk, name, file, text, told):
    fill(desk, CLEAN | {file: text})
    found = await checked(desk, name)
    assert found["failed"] == 1
    assert told in found["lines"][0]


@promise("plans:review")
@pytest.mark.thorough
async def test_a_library_that_is_not_here_is_no_error_of_types(desk):
    fill(desk, CLEAN | {"shop/web.py": "import some_library\n\nANSWER: int = some_library.ANSWER\n"})
    assert (await checked(desk, "types"))["failed"] == 0


@promise("plans:review")
@pytest.mark.thorough
async def test_sources_in_src_and_options_of_absent_plugins_are_understood(desk):
    fill(desk, {f"src/{name}" if name.startswith("shop") else name: text for name, text in CLEAN.items()})
    fill(desk, {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--cov -n 4"\n'})
    for name in ("types", "import", "tests"):
        found = await checked(desk, name)
        assert (found["counted"] > 0, found["failed"]) == (True, 0), name


@promise("plans:missing")
@pytest.mark.parametrize(
    ("name", "names", "told"),
    [
        ("lint", ["."], "there is no Python file"),
        ("types", ["."], "mypy ended with 2"),
        ("tests", ["."], "no test ran"),
        ("import", [], "there is no module"),
        ("lint", ["gone"], "gone: there is no such file"),
        ("tests", ["--version"], "--version: there is no such file"),
    ],
)
async def test_a_check_with_nothing_to_look_at_could_not_be_made(desk, name, names, told):
    fill(desk, {"notes.txt": "nothing\n", "pyproject.toml": "[project]\nname = 'nothing'\n"})
    assert told in await checked(desk, name, *names)


@promise("plans:review-hostile")
async def test_tests_may_write_and_the_workspace_stays_as_it_is(desk):
    writing = (
        "from pathlib import Path\n\n\ndef test_writes():\n    Path('made.txt').write_text('x')\n"
        "    Path('notes.txt').unlink()\n    assert not Path('/workspace/made.txt').exists()\n"
    )
    fill(desk, {"notes.txt": "kept\n", "test_it.py": writing})
    before = desk.held()
    assert (await checked(desk, "tests"))["failed"] == 0
    assert desk.held() == before


HOSTILE = {
    "prints without end": "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n    os.write(2, b'y' * 65536)\n",
    "forks without end": ("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"),
    "sleeps for ever": "import time\ntime.sleep(9999)\n",
    "takes all memory": "held = []\nwhile True:\n    held.append(bytearray(10**7))\n",
    "fills the disk": "with open('/tmp/full', 'wb') as file:\n    while True:\n        file.write(bytes(10**6))\n",
    "ends everything": "import os, signal\nos.kill(-1, signal.SIGKILL)\nos._exit(0)\n",
    "ends its parent": "import os, signal\nos.kill(1, signal.SIGKILL)\nos.kill(1, signal.SIGSTOP)\nos._exit(0)\n",
    "leaves a child behind": "import os, time\nif os.fork() == 0:\n    time.sleep(9999)\nos._exit(0)\n",
    "writes to the workspace": "open('/workspace/conftest.py', 'w')\n",
    "puts a pipe where the answer goes": ("import os\nos.mkfifo('/tmp/told.json')\nos._exit(0)\n"),
    "answers with nonsense": "import os\nopen('/tmp/told.json', 'w').write('[' * 10**6)\nos._exit(0)\n",
}


@promise("plans:review-hostile")
@pytest.mark.thorough
@pytest.mark.parametrize("what", spread(list(HOSTILE), 3))
async def test_a_hostile_workspace_is_bounded_and_changes_nothing(desk, what):
    fill(desk, CLEAN | {"conftest.py": HOSTILE[what]})
    before = desk.held()
    async with asyncio.timeout(150):
        said = await checked(desk, "tests", seconds=4)
    assert isinstance(said, str), said
    assert len(said) < 3000
    assert desk.held() == before


@promise("plans:review-hostile")
@pytest.mark.thorough
async def test_links_pipes_and_huge_files_harm_no_check(desk):
    wrong_but_excluded = {
        "shop/prices.py": 'PRICE: int = "3"\n',
        "pyproject.toml": "[tool.mypy]\nexclude = ['shop/prices.py']\n",
    }
    fill(desk, CLEAN | wrong_but_excluded)
    for name, target in {"out": "/etc", "loop": ".", "shop/up": "..", "root": "/", "nowhere": "nowhere"}.items():
        (desk.root / name).symlink_to(target)
    (desk.root / "more").symlink_to("tests")
    os.mkfifo(desk.root / "pipe")
    found = {name: await checked(desk, name) for name in ("lint", "types", "import", "tests")}
    assert [(name, said["failed"]) for name, said in found.items()] == [(name, 0) for name in found], found
    assert found["tests"]["counted"] == 4, "a link to another folder is followed, and none that leads back"
    with (desk.root / "huge.bin").open("wb") as file:
        file.truncate(1 << 40)
    assert "cannot be copied for its tests: No space left" in await checked(desk, "tests")
    measured = await desk.ask("measure", writable=False, paths=["out/passwd", "pipe", "loop", "shop/orders.py"])
    assert [("error" in file, "sha256" in file) for file in measured["files"]] == [(True, False)] * 3 + [(False, True)]
