"""Print which commands of each shape differ between the kept histories of a git revision and those of the tree.

python -m tests.replay.compare --base REVISION [--without COMMAND ...]
"""

import argparse
import difflib
import re
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from temporalio.client import WorkflowHistory

from tests.replay.marks import commands_of

HISTORIES = Path(__file__).parent / "histories"
_VERSION = re.compile(r"^\d+\.\d+\.\d+-")
"""Before the first release the name of a file began with a version."""
Kept = dict[str, list[str]]
"""The commands of histories by their shapes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True, help="the git revision to compare with")
    parser.add_argument("--without", nargs="*", default=[], help="commands that are not looked at, such as announce")
    asked = parser.parse_args()
    print("\n".join(compared(kept_at(asked.base), kept_now(), asked.without)))


def compared(before: Kept, now: Kept, without: Collection[str] = ()) -> Iterator[str]:
    """Yield what there is to tell of each shape: its new commands after a plus, those that went after a minus."""
    for shape in sorted(before.keys() | now.keys()):
        if shape not in before or shape not in now:
            yield f"{shape}: {'gone' if shape in before else 'new'}"
            continue
        old, new = ([command for command in of[shape] if command not in without] for of in (before, now))
        lines = difflib.unified_diff(old, new, n=1, lineterm="")
        changed = [line for line in lines if not line.startswith(("---", "+++"))]
        yield f"{shape}: {len(new)} commands, {'changed' if changed else 'the same'}"
        yield from (f"    {line}" for line in changed)


def kept_now() -> Kept:
    """Return the commands of the histories of the tree, by shape."""
    return _kept([path.name for path in HISTORIES.iterdir()], lambda name: (HISTORIES / name).read_text("utf-8"))


def kept_at(revision: str) -> Kept:
    """Return the commands of the histories of a revision, by shape."""
    names = _git("ls-tree", "--name-only", revision, "./").splitlines()
    return _kept(names, lambda name: _git("show", f"{revision}:./{name}"))


def _kept(names: Iterable[str], read: Callable[[str], str]) -> Kept:
    """Return the commands by shape; of several versions those of the last one."""
    kept = {_VERSION.sub("", Path(name).stem): name for name in sorted(names) if name.endswith(".json")}
    return {shape: commands_of(WorkflowHistory.from_json(shape, read(name))) for shape, name in kept.items()}


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=HISTORIES, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
