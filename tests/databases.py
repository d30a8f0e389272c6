"""Fixtures of tests that run on both databases; a folder of such tests imports them in its conftest.py."""

import pytest
import pytest_asyncio


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request):
    """Name the database of one test: a file in its home, or one of the session's Postgres that has its tables."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database_url(request):
    """Name an empty database of one test: a file in its home, or a new database of the session's Postgres."""
    return None if request.param == "sqlite" else request.getfixturevalue("empty_postgres_url")


@pytest_asyncio.fixture
async def postgres_url(postgres):
    async with postgres.store() as address:
        yield address


@pytest_asyncio.fixture
async def empty_postgres_url(postgres):
    return await postgres.new_database()


@pytest.fixture
def another_database_url(request, database_url):
    """Name a second database of the same kind."""
    return None if database_url is None else request.getfixturevalue("second_postgres_url")


@pytest_asyncio.fixture
async def second_postgres_url(postgres):
    async with postgres.store() as address:
        yield address
