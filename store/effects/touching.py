"""Find the effects of later runs that touched the same thing as an effect that is to be undone."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from backstay.effects.effect import EffectState, Touch
from backstay.errors import BackstayError
from backstay.shown import one_line
from store.blobs.blobs import BlobStore
from store.effects.effects import Effects
from store.effects.types import EffectRow
from store.runs.runs import Runs

_STANDS = frozenset(
    {EffectState.APPLIED, EffectState.DISPATCHED, EffectState.UNKNOWN, EffectState.DOUBTFUL, EffectState.KEPT}
)
_SHORTEST, _LONGEST = 3, 200
_LEAST_NUMBER = 1000
_MOST_LEAVES = 2000
"""How many leaves of one answer are looked at."""
_MOST_EFFECTS = 1000
"""How many effects of later runs are looked at."""
MOST_TOUCHES = 5
"""How many of them are named for one effect."""
_TELLING = re.compile(r"[0-9@/]|\w\.\w")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_END_OF_ID = re.compile(r"(?:^|_|-)id$|Id$|ID$")


class Touching:
    """Compare effects by the identifiers in their arguments and answers; nothing of these leaves it."""

    def __init__(self, runs: Runs, effects: Effects, blobs: BlobStore) -> None:
        """Read in these parts of the store."""
        self._runs = runs
        self._effects = effects
        self._blobs = blobs

    async def later(self, run: str, rows: Sequence[EffectRow]) -> dict[int, tuple[Touch, ...]]:
        """Return, by the number of each effect of a run, what later runs did to the same thing; where they did."""
        followers = await self._runs.later(run) if rows else []
        if not followers:
            return {}
        later: list[tuple[Touch, frozenset[str]]] = []
        for follower in followers:
            made = [row for row in await self._effects.of_run(follower.run) if not row.undo and row.state in _STANDS]
            for row in made[: _MOST_EFFECTS - len(later)]:
                touch = Touch(
                    workflow_id=one_line(follower.workflow_id, 200),
                    task=one_line(follower.text, 80),
                    effect=row.n,
                    tool=one_line(row.tool, 100),
                )
                later.append((touch, await self._identifiers(row)))
        found: dict[int, tuple[Touch, ...]] = {}
        for row in rows if later else ():
            own = await self._identifiers(row)
            touched = [touch for touch, identifiers in later if own & identifiers]
            if touched:
                found[row.n] = tuple(touched[:MOST_TOUCHES])
        return found

    async def _identifiers(self, row: EffectRow) -> frozenset[str]:
        blobs = self._blobs.of(row.run)
        said: list[Any] = []
        try:
            if row.arguments_sealed is not None:
                said.append(await blobs.unseal_json(row.arguments_sealed))
            if row.result_ref is not None:
                record = await blobs.get_json(row.result_ref)
                digest = record["digest"]
                said.append(digest["data"] if "data" in digest else await blobs.get_json(record["shown"]))
        except (BackstayError, KeyError, TypeError):
            # It only informs: a value that cannot be read stops no undo.
            pass
        return frozenset(identifiers_in(said)) - {row.effect_id}


def identifiers_in(value: Any) -> Iterable[str]:
    """Yield the identifiers among the leaves of a JSON value, as far as it is looked at."""
    waiting: list[tuple[str, Any]] = [("", value)]
    left = _MOST_LEAVES
    while waiting and left:
        name, item = waiting.pop()
        match item:
            case dict():
                waiting.extend((str(key), inner) for key, inner in item.items())
            case list():
                waiting.extend((name, inner) for inner in item)
            case _:
                left -= 1
                if (identifier := _identifier(name, item)) is not None:
                    yield identifier


def _identifier(name: str, leaf: Any) -> str | None:
    match leaf:
        case bool():
            return None
        case int() if abs(leaf) >= _LEAST_NUMBER or _END_OF_ID.search(name):
            return str(leaf)
        case str() if _SHORTEST <= len(leaf) <= _LONGEST and not any(map(str.isspace, leaf)):
            return leaf if _TELLING.search(leaf) and not _DATE.match(leaf) else None
        case _:
            return None
