"""Print the part of requirements.lock that some packages need, with its hashes; the Dockerfile installs that.

python deploy/locked.py "backstay[postgres,sandbox]"    what backstay with two of its extras needs
python deploy/locked.py hatchling                       what builds the wheel

The lock says behind each package which others need it. A package that another one needs only for one of its extras is
therefore printed too. pip refuses to install anything that is missing here, so a fault of this file is seen at once.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT, LOCK = Path("pyproject.toml"), Path("requirements.lock")
_NAMED = re.compile(r"^\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?")


def named(requirement: str) -> tuple[str, list[str]]:
    """Return the name in a requirement, spelled as in the lock, and its extras."""
    found = _NAMED.match(requirement)
    if found is None:
        raise SystemExit(f"{requirement!r} names no package")
    name = re.sub(r"[-_.]+", "-", found[1]).lower()
    return name, [extra.strip() for extra in (found[2] or "").split(",") if extra.strip()]


def direct(requirement: str, project: dict) -> Iterator[str]:
    """Yield what is to be installed first: the package itself, or for this project what it declares."""
    name, extras = named(requirement)
    if name != project["name"]:
        yield name
        return
    for extra in extras:
        if extra not in project["optional-dependencies"]:
            known = ", ".join(project["optional-dependencies"])
            raise SystemExit(f"{requirement!r}: there is no extra {extra!r}; there are {known}")
    for each in (*project["dependencies"], *(line for e in extras for line in project["optional-dependencies"][e])):
        yield from direct(each, project)


def entries(lock: str) -> list[tuple[str, str, set[str]]]:
    """Return of each entry of the lock its name, its whole text, and the names of those that need it."""
    found = []
    for text in re.split(r"(?m)^(?=[A-Za-z0-9])", lock):
        if not text.strip():
            continue
        # "# via a", or "# via" and a line for each.
        said = text.partition("# via")[2].replace("#", " ").split("\n")
        found.append((named(text)[0], text, {named(line)[0] for line in said if line.strip()}))
    return found


def needed(wanted: set[str], lock: list[tuple[str, str, set[str]]]) -> set[str]:
    """Return the packages, with all that they need."""
    grown = wanted | {name for name, _, parents in lock if parents & wanted}
    return wanted if grown == wanted else needed(grown, lock)


def main(*requirements: str) -> None:
    """Print the entries."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    lock = entries(LOCK.read_text(encoding="utf-8"))
    wanted = {name for requirement in requirements for name in direct(requirement, project)}
    if missing := wanted - {name for name, _, _ in lock}:
        raise SystemExit(f"{LOCK} lacks {', '.join(sorted(missing))}; make it anew")
    wanted = needed(wanted, lock)
    sys.stdout.write("".join(text for name, text, _ in lock if name in wanted))


if __name__ == "__main__":
    main(*sys.argv[1:])
