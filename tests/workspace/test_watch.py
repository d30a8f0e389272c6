"""The limits of a whole jail are watched while its processes come and go."""

import ctypes
import os
import signal
import socket
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from sandbox.workspaces.watch import JailWatch, descendants, nameless_of
from tests.requirements import promise

FORKS = "while :; do (:)& (:)& (:)& wait; done"


@pytest.fixture
def busy():
    """A shell whose children live for a moment each."""
    with subprocess.Popen(("/bin/sh", "-c", FORKS)) as shell:
        yield shell.pid
        shell.kill()


@promise("workspaces:narrowed")
def test_processes_that_end_while_they_are_looked_at_stop_no_command(busy, tmp_path):
    watch, device = JailWatch(memory_mb=10_000), tmp_path.stat().st_dev
    # Without care, one look in two hundred met a process that had just ended.
    for _ in range(600):
        assert watch(busy) is None
        assert nameless_of(descendants(busy), device).size == 0


def as_nobody(look):
    """Return what a look finds that a process makes which is not root; as root, nothing is hidden from it."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        with suppress(BaseException):
            os.setgid(65534)
            os.setuid(65534)
            os.write(writing, str(look()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def hidden(act, device):
    """Return how much of a child that does something, or nothing, cannot be seen by its own user."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        act()
        os.write(writing, b".")
        signal.pause()
    os.close(writing)
    os.read(reading, 1)
    while act is _ends and "\nState:\tZ" not in Path(f"/proc/{child}/status").read_text():
        pass
    found = nameless_of([child], device).hidden
    os.kill(child, signal.SIGKILL)
    return found


def _ends():
    os._exit(0)


def _hides():
    ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: nobody but root may look


@promise("workspaces:narrowed")
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_who_is_not_root_takes_no_process_that_has_ended_for_one_that_hides_its_files(tmp_path):
    device = tmp_path.stat().st_dev

    assert as_nobody(lambda: hidden(_ends, device)) == "0"
    assert int(as_nobody(lambda: hidden(_hides, device))) > 0


@promise("workspaces:machine-sockets")
def test_the_sockets_of_the_machine_do_not_count_as_those_of_a_jail():
    with ExitStack() as stack:
        shell = stack.enter_context(subprocess.Popen(("/bin/sh", "-c", "sleep 60; true")))
        stack.callback(shell.kill)
        for _ in range(120):
            stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        while not (living := [*descendants(shell.pid)]):
            pass
        assert JailWatch(memory_mb=1024)(shell.pid) is None
        for pid in living:
            os.kill(pid, signal.SIGKILL)
