"""Jails from outside: every program comes to a defined end, and no process, file or user number is left behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from inspect import cleandoc
from pathlib import Path

import pytest
import pytest_asyncio

from backstay.errors import SandboxLost
from sandbox.limits import Limits
from sandbox.programs.crash import ProgramCrashed
from sandbox.programs.jail import Jail
from tests.requirements import promise
from tests.sandbox.places import HOUSE, as_nobody, image, readable_nsjail, shared
from tests.sandbox.playing import TOOLS, answers, children, jails_in, opened, play, start_frame
from tests.sizes import spread

SMALL = Limits(wall_s=2.0, cpu_s=1, rounds=3, calls_per_batch=5, frame_bytes=100_000, output_bytes=200_000)
FAULT = "import faulthandler\nfaulthandler._read_null()"
SEND = "import os, json\ndef send(data, fd=61):\n    os.write(fd, len(data).to_bytes(4, 'big') + data)\n"


@pytest_asyncio.fixture(scope="module")
async def sandbox(tmp_path_factory):
    async with opened(tmp_path_factory.mktemp("jails"), limits=SMALL) as made:
        yield made


def state(pid: int) -> str:
    """The letter of a process's state; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""


async def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        await asyncio.sleep(0.005)


@promise("sandbox:caps")
@pytest.mark.parametrize(
    ("source", "kind", "told"),
    spread(
        [
            (
                "import select\nselect.select([], [], [], 60)",
                "WallLimit",
                "wall: the program computed for more than 2 s",
            ),
            ("import os\nr, w = os.pipe()\nos.read(r, 1)", "WallLimit", "wall:"),
            ("while True: print('x' * 1000)", "OutputLimit", "output: the program printed more than 200000 bytes"),
            ("import os\nwhile True: os.write(2, b'x' * 9999)", "OutputLimit", "output:"),
            ("return 'x' * 200_000", "FrameLimit", "frame size: the calls or the result have 200"),
            ("await mail.send(text='x' * 200_000)", "FrameLimit", "at most 100000"),
            (
                "await asyncio.gather(*(mail.find(n=n) for n in range(6)))",
                "CallLimit",
                "calls per batch: 6 calls at once",
            ),
            (
                "for n in range(9): await mail.find(n=n)",
                "RoundLimit",
                "rounds: the program paused for calls more than 3",
            ),
            ("x = 'x' * (1 << 30)", "MemoryLimit", "memory: the program needs more than 512 MB"),
            ("import os\nos.chroot('/')", "ForbiddenSystemCall", "forbidden system call (SIGSYS)"),
            (FAULT, "InterpreterCrash", "the interpreter crashed (SIGSEGV)"),
            ("import os\nos.abort()", "InterpreterCrash", "the interpreter crashed (SIG"),
            ("import os\nos._exit(0)", "InterpreterExit", "the interpreter ended without an answer (exit status 0)"),
            ("import os\nos._exit(9)", "InterpreterExit", "exit status 9"),
            ("import os\nos._exit(137)", "Killed", "killed (SIGKILL)"),
            ("await call('bank.pay', {})", "NameError", "name 'call' is not defined"),
            (
                "from sandbox_py.client import call\nawait call('bank.pay', {})",
                "ToolNotFound",
                "'bank.pay' is not one of",
            ),
        ],
        9,
    ),
)
async def test_each_way_to_die_has_its_own_name_in_one_line_and_the_sandbox_goes_on(sandbox, source, kind, told):
    played = await play(sandbox, source)
    assert played.error["type"] == kind
    assert told in played.error["message"]
    assert "\n" not in played.error["message"]
    assert (await play(sandbox, "return 1")).result == 1


@promise("sandbox:caps")
@pytest.mark.parametrize(
    "source", spread(["while True: pass", "10 ** 10 ** 8", "import re\nre.match('(a+)+b', 'a' * 99)"], 1)
)
async def test_processor_time_is_bounded_apart_from_the_wall_in_python_and_in_c(tmp_path, source):
    async with opened(tmp_path, limits=Limits(cpu_s=1, wall_s=60), ready=0) as box:
        played = await play(box, f"await mail.find()\n{source}")
    assert played.error == {"type": "CpuLimit", "message": "CPU: the program used more than 1 s of processor time"}


@promise("sandbox:output")
async def test_what_is_printed_beyond_what_is_kept_is_counted(tmp_path):
    async with opened(tmp_path, limits=Limits(output_kept=10, output_bytes=1000), ready=0) as small:
        halted = (await play(small, "print('é' * 10)\nprint('x' * 10)\nreturn 1")).halted
    assert (halted.output, halted.output_dropped) == ("é" * 5, 22)


CATCHES_ALL = """
while True:
    try:
        await mail.send(n=1)
    except BaseException as error:
        print(type(error).__name__)
"""
PATCHES_ALL = """
import asyncio, json, os, sys, gc, builtins
def broken(*_, **__):
    raise RuntimeError("patched")
first = await mail.find(n=1)
for module in (json, os, sys, asyncio, builtins):
    for name in list(vars(module)):
        if not name.startswith("__"):
            setattr(module, name, broken)
return first
"""
AFTER_THE_END = """
import atexit, sys, threading
class Last:
    def __del__(self):
        print("late")
atexit.register(print, "late")
threading._register_atexit(print, "late")
sys.last = Last()
kept = Last()
return 1
"""


@promise("sandbox:hostile-programs")
async def test_a_program_that_catches_everything_still_waits_for_its_calls_like_any_other(sandbox):
    played = await play(sandbox, CATCHES_ALL)
    assert played.error["type"] == "RoundLimit"
    assert [len(batch) for batch in played.batches] == [1, 1, 1]
    assert played.halted.output == ""


@promise("sandbox:hostile-programs")
@pytest.mark.parametrize(
    "source",
    spread(
        [
            PATCHES_ALL,
            "import os\nos.closerange(0, 64)\nreturn 1",
            "import os\nos.close(60)\nawait mail.find(n=1)",
            "import os\nos.close(61)\nawait mail.find(n=1)",
            "import os\nos.dup2(60, 61)\nawait mail.find(n=1)",
            "import os\nos.execv('/usr/bin/python3', ['python3', '-c', 'print(1)'])",
            "import sys\nsys.stdout.close()\nsys.stderr.close()\nsys.stdout = None\nraise ValueError",
            "import gc\nfor one in gc.get_objects():\n    if isinstance(one, dict): one.clear()",
            "loop = asyncio.get_running_loop()\nloop._ready.clear()\nloop._make_calls = None\nawait mail.find()",
            "asyncio.current_task().cancel()\nawait asyncio.sleep(1)",
            "asyncio.get_running_loop().stop()\nasyncio.get_running_loop().close()\nraise GeneratorExit",
            "import sys\nsys.modules.clear()\nraise MemoryError",
            "import resource\nx = []\nwhile True: x.append(x[:] + [0] * 1000)",
        ],
        7,
    ),
    ids=str,
)
async def test_whatever_a_program_does_to_its_own_interpreter_it_comes_to_a_defined_end(sandbox, source):
    halted = (await play(sandbox, source)).halted
    assert halted.kind in {"crashed", "finished"}
    if halted.kind == "crashed":
        assert set(halted.error or {}) == {"type", "message"}
    assert (await play(sandbox, "return 1")).result == 1


@promise("sandbox:hostile-programs")
async def test_nothing_of_a_program_runs_after_its_end(sandbox):
    played = await play(sandbox, AFTER_THE_END)
    assert (played.result, played.halted.output) == (1, "")


@promise("sandbox:forged")
@pytest.mark.parametrize(
    ("forged", "kind"),
    [
        ("os.write(61, b'\\xff\\xff\\xff\\xff')", "FrameLimit"),
        ("send(b'{}')", "ProtocolBroken"),
        ('send(b\'{"calls":[{"i":9,"tool":"mail.send","args":{}}]}\')', "ProtocolBroken"),
        ('send(b\'{"calls":[{"i":0,"tool":"bank.pay","args":{}}]}\')', "ToolNotFound"),
        ("os.write(61, b'\\0\\0')", "WallLimit"),
        ("os.write(61, b'\\0\\0\\1\\0{\"done\"')", "WallLimit"),
        ("os.write(61, b'\\0')\nos._exit(0)", "InterpreterExit"),
        ("os.write(61, os.urandom(60000))", "FrameLimit"),
    ],
)
async def test_a_forged_frame_gains_nothing(sandbox, forged, kind):
    played = await play(sandbox, f"{SEND}{forged}\nimport select\nselect.select([], [], [], 60)")
    assert played.halted.kind == "crashed"
    assert played.error["type"] == kind
    assert played.batches == []


@promise("sandbox:forged")
async def test_a_forged_end_is_no_more_than_the_program_could_have_said_and_nothing_after_it_counts(sandbox):
    played = await play(sandbox, f'{SEND}send(b\'{{"done":{{"ok":"mine"}}}}\')\nwhile True: pass')
    assert played.result == "mine"
    twice = 'send(b\'{"done":{"ok":1}}\')\nsend(b\'{"done":{"ok":2}}\')'
    halted = (await play(sandbox, f"{SEND}{twice}\nwhile True: pass")).halted
    assert halted.result == 1 or (halted.error or {})["type"] == "ProtocolBroken"


@promise("sandbox:forged-out-of-turn")
async def test_a_paused_program_that_speaks_out_of_turn_is_not_gone_on_with(sandbox):
    source = (
        f'{SEND}send(b\'{{"calls":[{{"i":0,"tool":"mail.find","args":{{}}}}]}}\')\nsend(b\'{{}}\')\nwhile True: pass'
    )
    played = await play(sandbox, source)
    assert played.error["type"] in {"ProtocolBroken", "CpuLimit"}


@promise("sandbox:pipes")
async def test_the_programs_input_is_empty_and_its_control_pipes_are_not_where_it_prints(sandbox):
    source = "import os, sys\nreturn [sys.stdin.read(), os.read(0, 9).decode(), os.write(1, b'x'), os.listdir('/tmp')]"
    played = await play(sandbox, source)
    assert played.result == ["", "", 1, []]
    assert played.halted.output == "x"


@promise("sandbox:lost")
async def test_a_round_under_way_when_the_sandbox_closes_is_lost_and_not_the_programs_fault(tmp_path):
    async with opened(tmp_path, ready=1) as box:
        await until(lambda: box.ready == 1)
        running = asyncio.create_task(play(box, "print('on')\nwhile True: pass"))
        await until(lambda: box.ready == 0)
        await until(lambda: box.ready == 1)
    with pytest.raises(SandboxLost):
        await running


@promise("sandbox:lost")
async def test_a_round_that_is_cancelled_takes_its_jail_with_it(tmp_path):
    async with opened(tmp_path, ready=0) as box:
        running = asyncio.create_task(play(box, "while True: pass"))
        await until(lambda: jails_in(tmp_path))
        (begun,) = jails_in(tmp_path)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: begun not in children() and not jails_in(tmp_path))


@promise("sandbox:lost")
async def test_a_jail_killed_from_outside_is_lost_and_its_journal_brings_it_back(sandbox):
    mine = children()
    played = await play(sandbox, "a = await mail.find(n=1)\nb = await mail.find(n=2)\nreturn [a, b]", batches=1)
    sandbox.keep("killed", played.halted)
    frame = answers(played.halted, 1_700_000_100.0, lambda _tool, arguments: arguments)
    assert played.halted.jail is not None
    os.kill(played.halted.jail.pid, signal.SIGKILL)
    await until(lambda: not played.halted.jail.alive)

    async def rounds():
        return played.rounds

    halted = await sandbox.advance(
        sandbox.image_hash, played.start, key="killed", frame=frame, rounds=rounds, tools=TOOLS, first_call=1
    )
    assert (halted.kind, halted.replayed, halted.calls[0].arguments) == ("waiting", 1, {"n": 2})
    sandbox.discard(halted)
    await until(lambda: len(children() - mine) <= sandbox.ready + 2)


@promise("sandbox:start")
async def test_a_command_that_is_no_jail_is_told_with_what_it_printed():
    with pytest.raises(SandboxLost, match=r"a jail did not start: .*exit status 3.*: no luck"):
        await Jail.start(["/bin/sh", "-c", "echo no luck >&2; exit 3"], Limits())
    with pytest.raises(SandboxLost, match="it began with b'hello'"):
        await Jail.start(["/bin/sh", "-c", r"printf '\0\0\0\5hello'; sleep 60"], Limits())
    with pytest.raises(SandboxLost):
        await Jail.start(["/nowhere/nsjail"], Limits())


@promise("sandbox:start")
async def test_a_jail_that_ignores_the_polite_signal_is_killed_and_reaped():
    script = r"""trap '' TERM; printf '\0\0\0\14{"ready": 1}'; while :; do sleep 1; done"""
    jail = await Jail.start(["/bin/sh", "-c", script], Limits())
    pid = jail.pid
    await jail.end()
    assert jail.gone.done()
    assert state(pid) == ""
    with pytest.raises(ProgramCrashed, match="ended by its worker"):
        await jail.exchange(b"{}", wall_s=1)


WORKER = cleandoc(
    """
    import asyncio, sys
    from pathlib import Path
    from tests.sandbox.playing import opened, play

    async def main():
        async with opened(Path(sys.argv[1]), ready=1) as box:
            paused = await play(box, "await mail.find()", batches=1)
            while box.ready < 1:
                await asyncio.sleep(0.01)
            running = asyncio.create_task(play(box, "print('on', flush=True)\\nwhile True: pass"))
            while box.ready:
                await asyncio.sleep(0.01)
            while box.ready < 1:
                await asyncio.sleep(0.01)
            print("ready", flush=True)
            await running

    asyncio.run(main())
    """
)


def started(folder: Path) -> subprocess.Popen[bytes]:
    environment = {"PYTHONPATH": str(HOUSE), "TMPDIR": str(shared().parent), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", WORKER, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=HOUSE, env=environment)


def below(pid: int) -> list[int]:
    """All processes that a process has started, and those that they have."""
    found = []
    for entry in Path(f"/proc/{pid}/task").iterdir():
        for child in (entry / "children").read_text(encoding="ascii").split():
            found += [int(child), *below(int(child))]
    return found


@promise("sandbox:orphans")
async def test_no_jail_outlives_a_worker_that_is_killed_whether_it_computes_pauses_or_waits(tmp_path):
    await asyncio.to_thread(image)
    worker = started(tmp_path)
    try:
        assert worker.stdout is not None
        assert await asyncio.to_thread(worker.stdout.readline) == b"ready\n"
        jails = below(worker.pid)
        assert len(jails) == 6, "three jails, each an nsjail and an interpreter"
        worker.kill()
        # The limits of processor time and wall are far away, so only the worker's death can end them this soon.
        await until(lambda: not {state(pid) for pid in jails} - {"", "Z"}, seconds=3)
    finally:
        worker.kill()
        worker.wait()


@promise("sandbox:users")
async def test_each_jail_that_lives_is_another_user_outside_and_numbers_are_used_again(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may choose users")
    async with opened(tmp_path, ready=0) as box:
        waiting = [await play(box, "await mail.find()", batches=1) for _ in range(3)]
        users = [_user_of(program.halted.jail) for program in waiting]
        assert len(set(users)) == 3
        box.discard(waiting[1].halted)
        await waiting[1].halted.jail.end()
        again = await play(box, "await mail.find()", batches=1)
        assert _user_of(again.halted.jail) == users[1]


def _user_of(jail: Jail) -> int:
    (child,) = below(jail.pid)
    return Path(f"/proc/{child}").stat().st_uid


@promise("sandbox:pipes")
async def test_a_large_frame_is_written_in_pieces_without_blocking_the_worker(sandbox):
    halted = await sandbox.advance(
        sandbox.image_hash,
        json.dumps({**json.loads(start_frame("found = await mail.find()\nreturn len(found)"))}).encode(),
        key=None,
        frame=None,
        rounds=_none,
        tools=TOOLS,
        first_call=0,
    )
    sandbox.keep("large", halted)
    frame = json.dumps({"now": 1_700_000_001.0, "results": [{"i": 0, "ok": "x" * 5_000_000}]}).encode()
    done = await sandbox.advance(
        sandbox.image_hash, b"", key="large", frame=frame, rounds=_none, tools=TOOLS, first_call=1
    )
    assert (done.kind, done.result, done.replayed) == ("finished", 5_000_000, 0)


async def _none():
    return []


AS_NOBODY = cleandoc(
    """
    import asyncio, json, os, signal, sys
    from pathlib import Path
    from sandbox.images.image import find_image
    from sandbox.isolation.nsjail import Nsjail
    from sandbox.programs.sandbox import Sandbox

    images, digest, nsjail = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    source = "x = await call('a.b', {})\\nfor _ in range(10 ** 6): pass\\nawait call('a.b', {})"
    source = "from sandbox_py.client import call\\n" + source
    start = json.dumps({"source": source, "bindings": {}, "seed": "s", "now": 1.0, "calls_from": 0}).encode()

    async def none():
        return []

    async def main():
        parts = {"image": find_image(digest, images), "images": images, "folder": Path.cwd() / "jails"}
        async with Sandbox(nsjail=Nsjail.find(nsjail), **parts, ready=1) as box:
            known = {"rounds": none, "tools": frozenset({"a.b"})}
            halted = await box.advance(digest, start, key=None, frame=None, first_call=0, **known)
            box.keep("k", halted)
            frame = json.dumps({"now": 2.0, "results": [{"i": 0, "ok": 1}]}).encode()
            next_one = await box.advance(digest, start, key="k", frame=frame, first_call=1, **known)
            facts = [next_one.kind, next_one.replayed, next_one.round.cpu_s > 0.001, next_one.jail.anonymous_mb() > 1]
            jail = next_one.jail
        print(json.dumps([*facts, jail.gone.done(), os.geteuid() != 0]))

    asyncio.run(main())
    """
)


@promise("sandbox:users")
@pytest.mark.thorough
async def test_a_user_without_rights_runs_keeps_and_ends_programs_like_root(tmp_path):
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and parent != parent.parent:
            parent.chmod(parent.stat().st_mode | 0o011)
    built = await asyncio.to_thread(image)
    folder = tmp_path / "nobody"
    done = await asyncio.to_thread(
        as_nobody,
        AS_NOBODY,
        str(shared() / "images"),
        built.hash,
        str(readable_nsjail().path),
        folder=folder,
    )
    assert (done.stdout, done.stderr) == ('["waiting", 0, true, true, true, true]\n', "")
