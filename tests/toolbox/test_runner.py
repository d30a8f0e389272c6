import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from backstay.errors import ToolUnavailable
from tests.requirements import promise
from toolbox.processes.runner import NotEnded, ProcessLimits, Runner


def runner(**options):
    return Runner(environment={"PATH": os.defpath, "SECRET": "not for children"}, **options)


async def run(source, folder, *arguments, limits=None, timeout_s=60, **options):
    command = ("python", "-I", "-c", source, *arguments)
    kept = {"stdout_kept": options.pop("stdout_kept")} if "stdout_kept" in options else {}
    return await runner(limits=limits, **kept).run(command, folder=folder, timeout_s=timeout_s, **options)


def is_running(process):
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@promise("plugins:result")
async def test_a_command_tells_its_exit_code_and_what_it_printed_on_either_stream(tmp_path):
    source = "import sys; print('out ä'); print('err', file=sys.stderr); sys.exit(3)"
    result = await run(source, tmp_path)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out ä\n", "err\n")
    assert result.allowed
    assert result.duration_ms > 0


@promise("plugins:clean")
async def test_a_command_sees_its_own_folder_its_own_variables_and_no_others(tmp_path):
    source = "import json, os, sys; print(json.dumps([os.getcwd(), dict(os.environ), sys.stdin.read()]))"
    folder, environment, given = json.loads((await run(source, tmp_path, environment={"KEY": "v"})).stdout)
    assert folder == str(tmp_path)
    assert set(environment) - {"LC_CTYPE"} == {"PATH", "KEY"}
    assert given == ""


@promise("plugins:limits")
async def test_limits_stand_before_the_command_runs_and_no_memory_is_dumped(tmp_path):
    source = (
        "import json, resource as r\n"
        "names = 'CPU', 'DATA', 'AS', 'FSIZE', 'NOFILE', 'CORE'\n"
        "print(json.dumps([r.getrlimit(getattr(r, f'RLIMIT_{name}')) for name in names]))"
    )
    limits = ProcessLimits(cpu_s=7, memory_mb=900, file_mb=3, files=40)
    found = json.loads((await run(source, tmp_path, limits=limits)).stdout)
    assert found == [[7, 7], [900 << 20] * 2, [64 << 30] * 2, [3 << 20] * 2, [40, 40], [0, 0]]


@promise("plugins:limits")
@pytest.mark.parametrize(
    ("source", "sign"),
    [
        ("while True: pass", signal.SIGKILL),
        ("open('big', 'wb').write(bytes(3 << 20))", signal.SIGXFSZ),
    ],
)
async def test_a_command_that_passes_a_limit_is_ended_by_the_kernel(tmp_path, source, sign):
    # Python ignores SIGXFSZ; what it starts must not inherit that.
    source = f"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n{source}"
    result = await run(source, tmp_path, limits=ProcessLimits(cpu_s=1, file_mb=1))
    assert result.exit_code == -sign


@promise("plugins:reserved")
async def test_what_a_command_only_reserves_is_no_memory_and_what_it_takes_is_bounded(tmp_path):
    source = (
        "import mmap\n"
        "reserved = mmap.mmap(-1, 16 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)\n"
        "try:\n"
        "    bytearray(512 << 20)\n"
        "except MemoryError:\n"
        "    print('bounded', len(reserved))\n"
    )
    result = await run(source, tmp_path, limits=ProcessLimits(memory_mb=512))
    assert (result.stdout, result.stderr) == (f"bounded {16 << 30}\n", "")


@promise("plugins:reserved")
async def test_what_does_not_count_as_memory_is_bounded_as_address_space(tmp_path):
    source = (
        "import mmap\n"
        "try:\n"
        "    mmap.mmap(-1, 65 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)\n"
        "except OSError:\n"
        "    print('bounded')\n"
    )
    assert (await run(source, tmp_path)).stdout == "bounded\n"


@promise("plugins:limits")
async def test_signals_that_the_worker_ignores_are_not_ignored_by_a_command(tmp_path):
    result = await runner().run(("/bin/sh", "-c", "grep SigIgn /proc/self/status"), folder=tmp_path, timeout_s=60)
    ignored = int(result.stdout.split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))


@promise("plugins:timeout")
async def test_at_its_deadline_a_command_and_all_it_started_are_killed(tmp_path, eventually):
    source = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "print(os.getpid(), child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    printed = []
    with pytest.raises(TimeoutError):
        await run(source, tmp_path, timeout_s=3, printed=lambda _, chunk: printed.append(chunk))
    processes = b"".join(printed).split()
    assert len(processes) == 2
    await eventually(lambda: not any(is_running(int(process)) for process in processes))


@promise("plugins:timeout")
async def test_what_a_command_leaves_in_the_background_ends_with_it(tmp_path, eventually):
    source = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
    result = await run(source, tmp_path)
    assert result.exit_code == 0
    await eventually(lambda: not is_running(int(result.stdout)))


AWAY = (
    "import os, signal, subprocess, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "session = subprocess.Popen(['sleep', '600'], start_new_session=True).pid\n"
    # A daemon, whose parent has ended before the command does.
    "daemon = subprocess.run(['/bin/sh', '-c', 'setsid sleep 600 > /dev/null 2>&1 & echo $!'], stdout=-1).stdout\n"
    "open('pids', 'w').write(f'{os.getpid()} {session} {int(daemon)}')\n"
    "print('up', flush=True)\n"
)


def away(folder):
    """Return the processes that left the session of the command."""
    return [int(process) for process in (folder / "pids").read_text().split()]


@promise("plugins:timeout")
@pytest.mark.parametrize("more", ["", "time.sleep(600)", "os.kill(os.getpid(), signal.SIGKILL)"])
async def test_what_leaves_the_session_of_a_command_has_ended_when_the_call_has(tmp_path, more):
    running = asyncio.create_task(run(AWAY + more, tmp_path, timeout_s=10 if "sleep" in more else 60))
    await asyncio.wait([running])
    if "sleep" in more:
        assert type(running.exception()) is TimeoutError
    else:
        assert running.result().exit_code == (-signal.SIGKILL if more else 0)
    assert [process for process in away(tmp_path) if is_running(process)] == []


# Five at a time, of which each has begun another one long before it ends.
FORKING = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "open('group', 'w').write(str(os.getpid()))\n"
    "end = time.monotonic() + 60\n"
    "if os.fork():\n"
    "    time.sleep(60)\n"
    "while time.monotonic() < end:\n"
    "    time.sleep(0.004)\n"
    "    if os.fork():\n"
    "        time.sleep(0.016)\n"
    "        os._exit(0)\n"
)


@promise("plugins:timeout")
async def test_processes_that_go_on_forking_have_ended_when_the_call_has(tmp_path):
    with pytest.raises(TimeoutError):
        await run(FORKING, tmp_path, timeout_s=10)
    with pytest.raises(ProcessLookupError):
        os.killpg(int((tmp_path / "group").read_text()), 0)


@promise("plugins:not-ended")
async def test_a_call_whose_processes_cannot_be_killed_is_not_said_to_have_ended(tmp_path):
    # What kills them is stopped itself, as by a debugger.
    source = "import os, signal, time; os.kill(os.getppid(), signal.SIGSTOP); time.sleep(600)"
    with pytest.raises(NotEnded):
        await run(source, tmp_path, timeout_s=5)


@promise("plugins:timeout")
async def test_a_cancelled_call_leaves_no_process(tmp_path, eventually):
    printed = asyncio.Event()
    running = asyncio.create_task(
        run("import os, time; open('pid', 'w').write(str(os.getpid())); print('up', flush=True); time.sleep(600)",
            tmp_path, printed=lambda *_: printed.set())
    )  # fmt: skip
    await asyncio.wait_for(printed.wait(), 150)
    running.cancel()
    await asyncio.wait([running])
    await eventually(lambda: not is_running(int((tmp_path / "pid").read_text())))


@promise("plugins:orphans")
async def test_a_command_ends_when_the_process_that_runs_it_is_killed(tmp_path, eventually):
    owner = tmp_path / "owner.py"
    owner.write_text(
        "import asyncio, pathlib, sys\nsys.path.insert(0, sys.argv[1])\nfrom toolbox.processes.runner import Runner\n"
        f"source = {AWAY!r} + 'time.sleep(600)'\n"
        "asyncio.run(Runner(environment={}).run(('python', '-c', source), folder=pathlib.Path(sys.argv[2]),"
        " timeout_s=600))\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, owner, Path(__file__).parents[2], tmp_path)
    pids = tmp_path / "pids"
    try:
        async with asyncio.timeout(150):
            while not (pids.exists() and pids.read_text()):
                await asyncio.sleep(0.05)
    finally:
        process.kill()
        await process.wait()
    await eventually(lambda: not any(map(is_running, away(tmp_path))))


@promise("plugins:bounded")
async def test_only_the_beginning_of_the_output_and_the_end_of_the_errors_are_kept(tmp_path):
    source = "import sys; sys.stdout.write('a' + 'x' * 5_000_000); sys.stderr.write('y' * 5_000_000 + 'z')"
    seen = {"stdout": 0, "stderr": 0}

    def count(stream, chunk):
        seen[stream] += len(chunk)

    result = await run(source, tmp_path, stdout_kept=1000, printed=count)
    assert seen == {"stdout": 5_000_001, "stderr": 5_000_001}
    assert result.stdout == "a" + "x" * 999 + "\n[4999001 bytes are left out here]"
    assert result.stderr.startswith("[4934465 bytes are left out here]\n")
    assert result.stderr.endswith("yz")


@promise("plugins:lists")
async def test_a_command_that_the_lists_do_not_allow_never_runs(tmp_path):
    for refused in (runner(deny=["s*"]), runner(allow=["git", "/usr/bin/true*"])):
        result = await refused.run(("sh", "-c", "touch ran"), folder=tmp_path, timeout_s=60)
        assert (result.allowed, result.exit_code) == (False, 126)
        assert "sh: the operator's list" in result.stderr
    assert not (tmp_path / "ran").exists()
    assert (await runner(allow=["sh"]).run(("sh", "-c", "touch ran"), folder=tmp_path, timeout_s=60)).allowed


@promise("plugins:exists")
async def test_a_command_that_cannot_be_started_is_named_and_is_no_result(tmp_path):
    (tmp_path / "data").write_text("no program")
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    for command, reason in (
        ("no-such-command", "'no-such-command' was not found"),
        ("./data", "chmod +x"),
        ("./script", "cannot be started: FileNotFoundError"),
    ):
        with pytest.raises(ToolUnavailable) as caught:
            await runner().run((command,), folder=tmp_path, timeout_s=60)
        assert reason in str(caught.value)
    with pytest.raises(ToolUnavailable):
        await runner().run(("sh",), folder=tmp_path / "gone", timeout_s=60)
