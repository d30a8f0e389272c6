"""Say in words for people where the arguments of a call came from, alike wherever a request is shown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from backstay.canonical import pointer_to
from backstay.provenance.source import Source, among
from backstay.shown import one_line

COMPOSED = "composed by the model"
"""Of what stood nowhere, where policy minds that."""


class ArgumentOrigin(NamedTuple):
    """Hold what people are told of where one argument came from."""

    text: str
    """Empty where there is nothing to tell."""
    minded: bool
    """Whether policy asks because of it."""


def first_seen(found: Source) -> str:
    """Return where text stood, in words for people."""
    match found.kind:
        case "task":
            return "the task" if found.content is None else "the task or its input, which others write"
        case "person":
            return "a person's answer" if found.content is None else "an answer of nobody verified"
        case "operator":
            return "the operator's files"
        case "model":
            return "the model's own words"
        case "step":
            return f"the answer of step {found.step}"
        case "tool":
            whose = "which others write" if found.content == "others" else "an own record"
            return f"the answer of {one_line(found.tool or '', 100)}, {whose}"
        case "program":
            whose = ", which others write" if found.content == "others" else ""
            return f"what a program computed from {one_line(found.tool or 'nothing', 100)}{whose}"


def told_of(sources: Mapping[str, Sequence[Source]], name: str) -> str:
    """Return where an argument of a request came from, in words for people; empty where there is nothing to tell."""
    told = [source for at, found in sources.items() if among(at, [pointer_to("", name)]) for source in found]
    people = [one_line(source.by, 200) for source in told if source.by is not None]
    steps = [source for source in told if source.kind == "step"]
    seen = [source for source in told if source.by is None and source.kind != "step"]
    said = (
        _listed("changed by ", "", people),
        _listed("refers to ", "to ", map(first_seen, steps)),
        _listed("first seen in ", "in ", (first_seen(source) for source in seen if not source.part)),
        _listed("composed, with words of ", "of ", (first_seen(source) for source in seen if source.part)),
        _listed("", "", (one_line(source.why, 200) for source in told if source.why is not None)),
    )
    return "; ".join(filter(None, said))


def told_together(told: Mapping[str, str]) -> str:
    """Return in one line what is told of several arguments, each text once; empty where nothing is told."""
    alike: dict[str, list[str]] = {}
    for name, text in told.items():
        if text:
            alike.setdefault(text, []).append(one_line(name, 80))
    return "; ".join(f"{_listed('', '', names)}: {text}" for text, names in alike.items())


def _listed(begin: str, again: str, told: Iterable[str]) -> str:
    """Return different things as a list; words behind a comma about one of them must not seem part of the next."""
    different = list(dict.fromkeys(told))
    if not different:
        return ""
    between = f", and {again}" if any("," in thing for thing in different[:-1]) else f" and {again}"
    return begin + between.join(different)
