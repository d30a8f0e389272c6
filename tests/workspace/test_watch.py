"""The limits of a whole jail are watched while its processes come and go."""

import os
import signal
import socket
import subprocess
from contextlib import ExitStack

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
