import pytest
import pytest_asyncio


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request):
    """Name the database of one test: a file in its home, or a new database of the session's Postgres."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def another_database_url(request, database_url):
    """Name a second database of the same kind."""
    return None if database_url is None else request.getfixturevalue("second_postgres_url")


@pytest_asyncio.fixture
async def second_postgres_url(postgres):
    return await postgres.new_database()
