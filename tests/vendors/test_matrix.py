"""Each kind of work is done with each vendor, as far as its published rules let it be, and the page says so.

A twentieth of the cells, some of each row and column, are run by `make test`, and all of them by `make soak`.
"""

import pytest
import pytest_asyncio

from tests.requirements import promise
from tests.sizes import sized
from tests.vendors.all import VENDORS
from tests.vendors.matrix import EXCLUDED, PAGE, faults, opened, table, written


@pytest_asyncio.fixture(scope="module")
async def found(temporal, tmp_path_factory):
    async with opened(temporal, tmp_path_factory.mktemp("vendors")) as made:
        yield await faults(made, VENDORS, one_in=sized(1, 20))


@promise("models:vendors")
@pytest.mark.thorough
async def test_each_kind_of_work_is_done_with_each_vendor(found):
    assert {cell: wrong for cell, wrong in found.items() if wrong} == {}


@promise("models:vendors")
async def test_the_page_has_the_table_of_this_run(found):
    page = PAGE.read_text(encoding="utf-8")
    assert written(page, table(found)) == page, "python -m tests.vendors.matrix"
    sources = [cell["source"] for row in EXCLUDED.values() for cell in row.values()]
    assert all(source.startswith("https://") and source in page for source in sources)
