"""Convert errors of the disk to StoreUnavailable, without importing a database."""

from collections.abc import Generator
from contextlib import contextmanager

from backstay.errors import StoreUnavailable
from backstay.shown import message_line

_ADDRESS = "BACKSTAY_DATABASE_URL"
_FIXES = (
    ("certificate verify failed", f"check the host and sslrootcert in {_ADDRESS}"),
    ("root certificate", f"name a file as sslrootcert in {_ADDRESS}, or system for the authorities of this machine"),
    ("no_certificate_or_crl_found", f"name a file with certificates as sslrootcert and sslcrl in {_ADDRESS}"),
    ("pem lib", f"check sslcert, sslkey and sslpassword in {_ADDRESS}"),
    ("key_values_mismatch", f"check sslcert, sslkey and sslpassword in {_ADDRESS}"),
    ("rejected ssl", f"turn on TLS at the server, or correct sslmode in {_ADDRESS}"),
    ("sslmode", f"correct {_ADDRESS}"),
    ("tls version", f"correct {_ADDRESS}"),
    ("read-only transaction", f"wait until {_ADDRESS} leads to a server that takes writes, or correct it"),
    ("target attribute", f"wait until {_ADDRESS} leads to a server that takes writes, or correct it"),
    ("locked", "another process holds it; find out which one keeps a transaction open"),
    ("full", "free some disk space"),
    ("readonly", "give this user the right to write the file and its directory"),
    ("read-only", "give this user the right to write the file and its directory"),
    ("unable to open", "check that the directory exists and may be written"),
    ("not a database", "the file is not a SQLite database; restore it or name another"),
    ("malformed", "the file is damaged; restore it from a backup"),
    ("authentication failed", f"correct the user or the password in {_ADDRESS}"),
    ("does not exist", f"create it on the server, or correct {_ADDRESS}"),
    ("permission denied", "give this user the right to it"),
    ("no such table", "the file was replaced under a running worker; restart the worker"),
)


@contextmanager
def disk_faults() -> Generator[None]:
    """Raise StoreUnavailable, with a one-line message and a fix, for every failure of the disk."""
    try:
        yield
    except OSError as error:
        raise unavailable(error) from error


def unavailable(cause: BaseException) -> StoreUnavailable:
    """Return an error that says in one line what failed and how to fix it."""
    said = message_of(cause)
    fix = next((fix for sign, fix in _FIXES if sign in said.lower()), "check that the database is reachable")
    return StoreUnavailable(f"store: {said}; {fix}")


def message_of(cause: BaseException) -> str:
    """Return the message of an error as one line."""
    return message_line(str(cause), 300) or type(cause).__name__
