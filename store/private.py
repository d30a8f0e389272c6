"""Directories that no other user looks into."""

from pathlib import Path


def make_private_directory(directory: Path) -> None:
    """Create a directory, and the missing ones above it, for this user only; leave existing ones as they are."""
    if not directory.is_dir():
        make_private_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
