"""Find the lines that would let a call through, among many, without a look at each of them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from backstay.canonical import canonical
from backstay.policies.condition import Judgement
from backstay.policies.learning.evidence import DecisionRecord
from backstay.policies.learning.parts import without_sources
from backstay.policies.rule import Rule

_MOST_PARTS = 40
_Key = tuple[str, str, str]
_ANY: _Key = ("", "", "")


class Matcher:
    """Tell which of some lines let a call through, wherever its arguments came from; in doubt, they do."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Look for these lines, by their place in the list."""
        self._rules = [rule.model_copy(update={"when": without_sources(rule.when or {}) or None}) for rule in rules]
        self._by_key: defaultdict[tuple[str, _Key], list[int]] = defaultdict(list)
        self._by_name: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for number, rule in enumerate(self._rules):
            name, keys = _keys_of(rule)
            self._by_name[rule.tool, name].append(number)
            for key in keys:
                self._by_key[rule.tool, key].append(number)

    def matching(self, case: DecisionRecord) -> list[int]:
        """Return the lines that would let a call through."""
        said = case.spot.values
        found = {number for key in (_ANY, *_keys_in(said)) for number in self._by_key.get((case.spot.tool, key), ())}
        # A value with too many parts to look each of them up, or one that nobody knows, may be any.
        wild = [*case.unseen, *(name for name, value in said.items() if _is_wild(value))]
        found |= {number for name in wild for number in self._by_name.get((case.spot.tool, name), ())}
        if not found:
            return []
        said |= dict(zip(case.spot.numbers, case.numbers, strict=True)) | dict.fromkeys(case.texts, "")
        return [number for number in sorted(found) if self._lets(self._rules[number], case, said)]

    @staticmethod
    def _lets(rule: Rule, case: DecisionRecord, said: dict[str, Any]) -> bool:
        if case.unseen or case.incomplete:
            when = {path: each for path, each in (rule.when or {}).items() if path not in case.unseen}
            rule = rule.model_copy(update={"when": when or None, "only": ()})
        return rule.applies(case.spot.tool, said, allows=True)[0] is not Judgement.FAILS


def _keys_of(rule: Rule) -> tuple[str, list[_Key]]:
    """Return the argument by which a line is found, and what is in calls that it lets through."""
    for name, operators in (rule.when or {}).items():
        for operator, operand in operators.items():
            match operator:
                case "equals" | "in":
                    choices: list[Any] = operand if operator == "in" else [operand]
                    leaves = [next(_leaves(choice), None) for choice in choices]
                    if not any(isinstance(leaf, int | float) for leaf in leaves):
                        return name, [("=", name, canonical(leaf)) for leaf in leaves]
                case "starts_with" | "ends_with":
                    return name, [(operator, name, operand)]
                case _:
                    pass
    return "", [_ANY]


def _keys_in(said: dict[str, Any]) -> Iterator[_Key]:
    for name, value in said.items():
        for leaf in () if _is_wild(value) else _leaves(value):
            yield "=", name, canonical(leaf)
            if isinstance(leaf, str):
                yield from (("starts_with", name, leaf[: at + 1]) for at in _places(leaf, "/"))
                yield from (("ends_with", name, leaf[at:]) for at in _places(leaf, "@"))


def _leaves(value: Any) -> Iterator[Any]:
    """Yield what is in a value; None for what is empty."""
    inside: list[Any] | None = None
    match value:
        case dict():
            inside = [*value.values()]
        case list():
            inside = value
        case _:
            yield value
    if inside is not None and not inside:
        yield None
    for item in inside or ():
        yield from _leaves(item)


def _places(text: str, sign: str) -> Iterator[int]:
    at = text.find(sign)
    while at >= 0:
        yield at
        at = text.find(sign, at + 1)


def _is_wild(value: Any) -> bool:
    return (
        sum(leaf.count("/") + leaf.count("@") if isinstance(leaf, str) else 1 for leaf in _leaves(value)) > _MOST_PARTS
    )
