"""Return the version of this release."""

UNRELEASED = "0.1.0 (checkout)"


def version() -> str:
    """Return the version of the installed distribution, or that this is a checkout."""
    from importlib.metadata import PackageNotFoundError  # noqa: PLC0415 - most commands do not say it
    from importlib.metadata import version as version_of  # noqa: PLC0415 - the same

    try:
        return version_of("backstay")
    except PackageNotFoundError:
        return UNRELEASED
