"""Hostile programs: what they attack holds, as the host sees it, and the suite notices where it does not hold."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.case import ENDS, PREFACES, corpus
from tests.hostile.facts import FACTS
from tests.hostile.harness import NOBODY, Area, make_area, run_corpus
from tests.requirements import promise

CLASSES = {
    "bombs",
    "exhaustion",
    "files_outside",
    "forks_and_threads",
    "frames",
    "kernel",
    "links_and_devices",
    "network",
    "processor",
    "runtime_tricks",
    "secrets",
    "signals_and_daemons",
}
OF_THE_PROFILE = {
    "files_outside",
    "forks_and_threads",
    "kernel",
    "links_and_devices",
    "network",
    "secrets",
    "signals_and_daemons",
}
"""What the profile decides; the other classes attack the host's side of the pipes, which a profile cannot weaken."""
NOTICED = {1: 60, 16: 4}
"""At least so many of all, and of every sixteenth one."""


@pytest.fixture(scope="module")
def area() -> Iterator[Area]:
    # The careless profile shows it at its own place, and a jail has no folders of ours in /dev/shm.
    folder = Path(tempfile.mkdtemp(prefix="backstay-hostile-", dir="/tmp"))
    yield make_area(folder)
    shutil.rmtree(folder)


def broken(verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        verdict["name"]: {"faults": verdict["faults"], "error": verdict["error"]}
        for verdict in verdicts
        if verdict["faults"]
    }


@promise("sandbox:hostile")
def test_there_are_enough_programs_of_every_class_and_each_says_what_must_hold():
    cases = corpus()
    sizes = Counter(case.kind for case in cases)
    assert sizes.keys() == CLASSES
    assert min(sizes.values()) >= 6
    assert len(cases) >= 150
    for case in cases:
        assert case.holds, case.name
        assert set(case.holds) <= FACTS, case.name
        assert case.ends in ENDS, case.name
        assert all((PREFACES / f"{name}.py").is_file() for name in case.uses), case.name


ALL = pytest.param(1, marks=pytest.mark.soak, id="all")
"""Every eighth program runs in `make test`, as root or as somebody else; each of them as both in `make soak`."""


@promise("sandbox:hostile")
@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run programs as root")
@pytest.mark.parametrize("every", [pytest.param(16, id="sixteenth"), ALL])
async def test_everything_holds_when_the_worker_is_root(area, every):
    assert broken(await run_corpus(area, corpus()[::every], uid=0)) == {}


@promise("sandbox:hostile")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("every", [pytest.param(16, id="sixteenth"), ALL])
@pytest.mark.thorough
async def test_everything_holds_when_the_worker_is_an_unprivileged_user(area, every):
    # Where root's sixteenth cannot run, this one is the whole.
    cases = corpus()[8::16] if every == 16 and os.geteuid() == 0 else corpus()
    assert broken(await run_corpus(area, cases, uid=os.geteuid() or NOBODY)) == {}


@promise("sandbox:hostile-noticed")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("every", [pytest.param(16, id="sixteenth"), ALL])
async def test_a_careless_profile_is_noticed_by_the_same_programs(area, every):
    cases = [case for case in corpus() if case.control and case.kind in OF_THE_PROFILE][::every]
    verdicts = await run_corpus(area, cases, uid=os.geteuid() or NOBODY, weak=True)
    attacked = {case.name: set(case.holds) for case in cases}
    noticed = [verdict["name"] for verdict in verdicts if attacked[verdict["name"]] & verdict["faults"].keys()]
    print(f"noticed: {len(noticed)} of {len(cases)}")  # noqa: T201 - the figure is of interest when it passes too
    assert len(noticed) >= NOTICED[every], noticed
