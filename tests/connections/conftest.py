"""Trust one authority for all tests here, and run what concerns the store on both databases."""

import pytest

from tests.connections.issuer import authority_in
from tests.databases import database_url, postgres_url

__all__ = ["database_url", "postgres_url"]


@pytest.fixture(scope="package")
def authority(tmp_path_factory):
    made = authority_in(tmp_path_factory.mktemp("authority"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", made.trusted)
        yield made
