"""A file that a command wrote, by name and content."""

from backstay.noun import Noun


class Artifact(Noun):
    """Name one written file, so that it can be found and recognised."""

    path: str
    """Relative to the workspace."""
    sha256: str
    size: int
    """In bytes."""
