"""The index of what a toolbox can do: its domains, how many methods each has, and of which classes."""

from collections import Counter
from collections.abc import Iterable, Mapping

from backstay.frozen import Frozen
from backstay.shown import counted, one_line
from backstay.tools.tool import Safety

_WIDTH = 200


class Capability(Frozen):
    """Tell what one provider offers."""

    methods: int
    classes: dict[str, int]
    """How many of them there are of each safety class, the least dangerous first."""
    reason: str = ""
    """Why it cannot be asked for its tools."""
    place: str = ""
    """The operator's own root in which its commands run, if there is one."""

    @property
    def words(self) -> str:
        """Return this in words: `8 tools (3 read_only, 5 restricted_write)`."""
        classes = ", ".join(f"{count} {name}" for name, count in self.classes.items())
        place = f", in {self.place}" if self.place else ""
        offered = f"{counted(self.methods, 'tool')}{f' ({classes})' if classes else ''}{place}"
        return one_line(": ".join(filter(None, (offered, self.reason))), _WIDTH)


def capability(classes: Iterable[Safety], reason: str = "", place: str = "") -> Capability:
    """Return what a provider offers whose tools are of these classes, and where its commands run."""
    found = Counter(classes)
    counts = {safety.value: found[safety] for safety in sorted(found, key=lambda safety: safety.level)}
    return Capability(methods=found.total(), classes=counts, reason=reason, place=place)


def capabilities_of(tools: Iterable[tuple[str, Safety]]) -> dict[str, Capability]:
    """Return what the providers of these tools offer; each tool is given by its provider and its class."""
    classes: dict[str, list[Safety]] = {}
    for provider, safety in tools:
        classes.setdefault(provider, []).append(safety)
    return {provider: capability(found) for provider, found in classes.items()}


def index_lines(capabilities: Mapping[str, Capability]) -> list[str]:
    """Return the index, a line for each provider."""
    return [f"{one_line(name, 60)}: {found.words}" for name, found in sorted(capabilities.items())]
