"""Which steps of a plan are not made either when some of its steps are left out."""

from collections import deque
from collections.abc import Collection, Sequence

from backstay.task.plan import Plan, PlanStep, steps_named


class StepDependencies:
    """Know which steps of a plan need each other: by references to results, and by groups that are undone together."""

    def __init__(self, written: Plan, checked: Sequence[PlanStep]) -> None:
        """Read the references of the steps as they were checked.

        A string so long that it is stored apart shows its references only in the plan as it was `written`.
        """
        steps = zip(written.steps, checked, strict=True)
        self.of = tuple(steps_named(index, a.arguments, b.arguments) for index, (a, b) in enumerate(steps))
        self._needing: dict[int, list[int]] = {}
        self._groups: dict[str, list[int]] = {}
        self._group = tuple(step.group for step in checked)
        for index, needed in enumerate(self.of):
            for other in needed:
                self._needing.setdefault(other, []).append(index)
            if self._group[index]:
                self._groups.setdefault(self._group[index], []).append(index)

    def without(self, left_out: Collection[int], most: int | None = None) -> dict[int, int]:
        """Return the steps that are not made without these, each with the step that it cannot be made without.

        A group is made whole or not at all, once one of its steps lacks a result. At most about `most` are looked for.
        """
        found: dict[int, int] = {}
        waiting = deque(sorted(left_out))
        while waiting and (most is None or len(found) < most):
            at = waiting.popleft()
            beside = self._groups.get(self._group[at], ()) if at in found else ()
            for other in (*self._needing.get(at, ()), *beside):
                if other not in found and other not in left_out:
                    found[other] = at
                    waiting.append(other)
        return found
