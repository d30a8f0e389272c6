"""Compile the sources of an image; run as a program of its own, so that what it writes depends on nothing else."""

import py_compile
import sys
from pathlib import Path


def main(root: Path, names: list[str]) -> None:
    """Compile each named file for the place it has in the jail, without checks for changes at run time."""
    for name in names:
        py_compile.compile(
            str(root / name),
            dfile=f"/{name}",
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.stdin.read().splitlines())
