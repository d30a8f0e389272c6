"""Trust one authority for all tests here, and run what concerns the store on both databases."""

from contextlib import contextmanager

import httpcore2
import pytest

from tests.connections.issuer import authority_in
from tests.databases import database_url, postgres_url

__all__ = ["database_url", "postgres_url"]


@pytest.fixture(scope="package")
def authority(tmp_path_factory):
    made = authority_in(tmp_path_factory.mktemp("authority"))
    with read_anew(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", made.trusted)
        yield made


@contextmanager
def read_anew():
    """Have the authorities read again that all tests of a process read once, before and after."""
    httpcore2.default_ssl_context.cache_clear()
    try:
        yield
    finally:
        httpcore2.default_ssl_context.cache_clear()
