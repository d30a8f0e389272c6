"""One hostile program and what must hold on the host while it runs and after."""

import platform
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
PREFACES = Path(__file__).parent / "prefaces"
ENDS = frozenset({"any", "crashed", "finished"})


@dataclass(frozen=True)
class Case:
    """Hold one program; the header of its file is all that is believed of it."""

    name: str
    """`class/name`."""
    holds: tuple[str, ...]
    """The facts that it attacks."""
    ends: str
    uses: tuple[str, ...]
    control: bool
    """Whether it may run under the weak profile."""
    source: str

    @property
    def kind(self) -> str:
        return self.name.partition("/")[0]

    def program(self, given: dict[str, object]) -> str:
        """Return the source to run: what the harness gives it, the prefaces it uses, and itself."""
        lines = [f"{name} = {value!r}" for name, value in given.items()]
        prefaces = [(PREFACES / f"{name}.py").read_text(encoding="utf-8") for name in ("proof", *self.uses)]
        return "\n".join([*lines, *prefaces, self.source])


def read_case(path: Path) -> Case:
    source = path.read_text(encoding="utf-8")
    said = dict(
        line.removeprefix("# ").split(": ", 1)
        for line in source.splitlines()[:4]
        if line.startswith("# ") and ": " in line
    )
    return Case(
        name=f"{path.parent.name}/{path.stem}",
        holds=tuple(said["holds"].split(", ")),
        ends=said["ends"],
        uses=tuple(said["uses"].split(", ")) if "uses" in said else (),
        control=not said.get("control", "").startswith("left out"),
        source=source,
    )


def corpus() -> list[Case]:
    """Return every program; those that set registers are written for one kind of processor."""
    cases = [read_case(path) for path in sorted(CORPUS.glob("*/*.py"))]
    return [case for case in cases if "library_calls" not in case.uses or platform.machine() == "x86_64"]
