"""What all tests share: one real Temporal server, and engines made to order."""

import gc

from tests.temporary import keep_in_memory

# Until all tests are collected there is nothing to collect but what stays.
gc.disable()
# Before anything asks where temporary files go.
keep_in_memory()

import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpcore2
import pytest
import pytest_asyncio
import structlog
from hypothesis import settings
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.testing import WorkflowEnvironment

from backstay.client.connecting import DATA_CONVERTER, compression
from sandbox.limits import Limits
from sandbox.programs.sandbox import Sandbox, open_sandbox
from tests.crash.temporal_server import QUEUES
from tests.engine import ROOT, Engine, engine
from tests.nursery.nursery import Nursery, open_nursery
from tests.postgres import PostgresServer, open_postgres
from tests.sizes import FULL, sized
from tests.stores import share_statements

if TYPE_CHECKING:
    from tests.browser import Browser
    from tests.s3_server import S3Server

KEYS = [
    SearchAttributeKey.for_keyword("BackstayState"),
    SearchAttributeKey.for_keyword("BackstayUser"),
    SearchAttributeKey.for_int("BackstayPending"),
    SearchAttributeKey.for_float("BackstayCostUsd"),
    SearchAttributeKey.for_keyword("BackstayTask"),
]


# Search attributes, all there from the start, are not read anew from the database for each run, which takes a dev
# server a tenth of its time.
_CACHED = "system.forceSearchAttributesCacheRefreshOnRead=false"
_PAUSES = "frontend.WorkflowPauseEnabled=true"
SERVER = [*QUEUES, "--dynamic-config-value", _CACHED, "--dynamic-config-value", _PAUSES]

ORDER = (
    "tests/crash/test_kill_points",
    "tests/e2e",
    "tests/hostile",
    "tests/crash",
    "tests/cli",
    "tests/docs",
    "tests/client",
    "tests/workspace",
    "tests/sandbox",
)
"""What keeps every core busy by itself stands apart, and what is short comes last."""

# Generated cases are the same at each run, so that none fails by chance; `make soak` looks for new ones.
# How long a case takes is measured elsewhere: on a busy machine each takes longer.
settings.register_profile("same-cases", derandomize=not FULL, deadline=None, max_examples=sized(100, 30))
settings.load_profile("same-cases")

_configure = structlog.configure


def _configure_anew(**options: Any) -> None:
    """Configure logs so that no logger keeps, from its first use on, what one test has configured."""
    _configure(**{**options, "cache_logger_on_first_use": False})


structlog.configure = _configure_anew

# Each HTTP client of its own would read all certificate authorities anew, for 20 ms; tests open thousands.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)
# Each store of its own would compile its statements anew.
share_statements()

# What a shell starts in the background ignores Ctrl-C, and so would the programs of which tests ask that they do not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what is short for the end: no process shall be left alone there with what takes long."""

    def place(item: pytest.Item) -> int:
        return next((number for number, start in enumerate(ORDER) if item.nodeid.startswith(start)), len(ORDER))

    items.sort(key=place)


COLLECTED_AFTER = (50_000, 50, 100)
"""What tests make of objects is large, such as the syntax trees of all files, or freed at once: collected as often as
Python does by itself, it would take a twentieth of all time."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Set aside what was imported, or every later garbage collection would go through half a million objects of it."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECTED_AFTER)
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _left_runs_end_with_their_module(request: pytest.FixtureRequest) -> Generator[None]:
    """Collect the coroutines of runs that a stopped worker left behind.

    Left to themselves they end at any moment, such as amid `ast.parse`, which CPython 3.11 then fails.
    """
    yield
    tests = (item for item in request.session.items if isinstance(item, pytest.Function))
    if any(item.module is request.module and "temporal" in item.fixturenames for item in tests):
        gc.collect()
        # What a module imported stays; the next collections need not look at it again.
        gc.freeze()


@pytest_asyncio.fixture(scope="session")
async def temporal() -> AsyncGenerator[Client]:
    """Start one dev server for the session."""
    binary = str(Path(sys.executable).parent / "temporal")
    async with await WorkflowEnvironment.start_local(
        data_converter=DATA_CONVERTER,
        dev_server_existing_path=binary,
        dev_server_extra_args=SERVER,
        search_attributes=KEYS,
    ) as environment:
        address = environment.client.service_client.config.target_host
        yield await environment.connect_client(data_converter=DATA_CONVERTER, grpc_compression=compression(address))


@pytest_asyncio.fixture(scope="session")
async def postgres() -> AsyncGenerator[PostgresServer]:
    """Start one Postgres for all tests of a process; a test that kills it needs its own."""
    async with open_postgres() as opened:
        yield opened


@pytest.fixture(scope="session")
def s3_server() -> Generator["S3Server"]:
    """Start one S3 server for all tests of a process; each test makes its own buckets."""
    from tests.s3_server import S3Server

    with S3Server().serving() as opened:
        yield opened


@pytest_asyncio.fixture
async def postgres_url(postgres: PostgresServer) -> str:
    """Make an empty database and return its address."""
    return await postgres.new_database()


@pytest_asyncio.fixture(scope="session")
async def nursery() -> AsyncGenerator[Nursery]:
    """Open the process that workers and commands are forks of."""
    async with open_nursery() as opened:
        yield opened


@pytest_asyncio.fixture(scope="session")
async def sandbox() -> AsyncGenerator[Sandbox]:
    """Open one sandbox for all tests of a process; root images are built once for all processes."""
    home, limits = ROOT / "build" / "sandbox", Limits(wall_s=8)
    async with open_sandbox(nsjail=None, home=home, image="python", limits=limits) as opened:
        yield opened


@pytest_asyncio.fixture(scope="session")
async def browser() -> AsyncGenerator["Browser"]:
    """Start one Chromium for all tests of a process; a missing one fails them."""
    from tests.browser import open_chromium

    async with open_chromium() as opened:
        yield opened


@pytest_asyncio.fixture
async def open_engine(temporal: Client, tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Engine]]:
    """Return a factory of engines that share the session's server."""

    def opened(rules: Any, **options: Any) -> AbstractAsyncContextManager[Engine]:
        return partial(engine, temporal, options.pop("folder", tmp_path))(rules, **options)

    return opened
