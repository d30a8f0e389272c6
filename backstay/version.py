"""Return the version of this release."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

UNRELEASED = "0.1.0 (checkout)"


def version() -> str:
    """Return the version of the installed distribution, or that this is a checkout."""
    try:
        return version_of("backstay")
    except PackageNotFoundError:
        return UNRELEASED
