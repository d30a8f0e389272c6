from contextlib import asynccontextmanager

import pytest

from activities.model.transcript import Transcripts
from activities.records import Records, RunSecrets
from activities.tools.arguments import Arguments
from backstay.redaction.redactor import Redactor
from store.opening import open_store


@pytest.fixture
def opened(tmp_path):
    """Open a store of its own and what works with it."""

    @asynccontextmanager
    async def open_in(folder=tmp_path):
        async with open_store(database_url=None, home=folder) as store:
            records = Records(store, RunSecrets(store.secrets, Redactor({"known-secret-value"})))
            yield Arguments(records), records, Transcripts(records)

    return open_in
