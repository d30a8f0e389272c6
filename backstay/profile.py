"""Named defaults that an operator writes for runs."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from backstay.budgets.budget import Budget
from backstay.errors import SettingsInvalid, TaskInvalid
from backstay.frozen import Frozen
from backstay.plans.review import ReviewRules
from backstay.shown import one_line


class Memory(Frozen):
    """Say whether runs may use what earlier ones of the same user have left."""

    read: bool = False
    """Whether the model may recall it."""
    write: bool = False
    """Whether later runs may recall this one."""


class Profile(Frozen):
    """Give a run what its task does not say."""

    strategy: Literal["default", "conservative", "exploratory"] = "default"
    """Which block of the prompt tells the model how to go about it."""
    persona: str = Field(default="", max_length=8000)
    """The operator's own words to the model."""
    model: str | None = Field(default=None, min_length=1, max_length=200)
    """Which model is asked, when the task names none."""
    budget: Budget = Budget()
    """The limits that a task has where it sets none itself; no ceiling."""
    lifelines: int = Field(default=3, ge=0, le=100)
    """How many repeats a step gets whose program or arguments failed."""
    perception: bool = False
    """Whether a model call of its own narrows the first search."""
    markers: bool = False
    """Whether `FINAL_ANSWER:` and `FURTHER_PROCESSING_REQUIRED:` mean something."""
    plans: bool = False
    """Whether the model may propose plans, also where the task does not want it to plan first."""
    delegation: bool = False
    """Whether the model may give parts of its task to sub-runs."""
    review: ReviewRules | None = None
    """How what a plan did is checked."""
    image: Literal["python", "data"] | None = None
    """What programs may import; None: as the settings say."""
    memory: Memory = Memory()

    def budget_of(self, own: Budget) -> Budget:
        """Return the limits of a task: its own where it sets them, else those of the profile."""
        return Budget(**{**_set(self.budget), **_set(own)})


FINAL, FURTHER = "FINAL_ANSWER:", "FURTHER_PROCESSING_REQUIRED:"
"""The markers: the run ends with the text, or goes on with it as the next instruction."""
OUT_OF_STEPS = f"{FINAL} [Max steps reached]"


def marker_of(text: str) -> str:
    """Return the marker at the start of a string, or nothing."""
    return next((marker for marker in (FINAL, FURTHER) if text.lstrip().startswith(marker)), "")


def behind_marker(text: str) -> str:
    """Return what a string says behind its marker."""
    return text.lstrip()[len(marker_of(text)) :].strip()


BUILT_IN: Mapping[str, Profile] = {
    "default": Profile(),
    "conservative": Profile(strategy="conservative"),
    "exploratory": Profile(strategy="exploratory"),
}
"""The profiles that there are without a file."""
MOST = 200
_LONGEST_NAME = 80


class Profiles:
    """Know the profiles of an operator, and the built-in ones."""

    def __init__(self, own: Mapping[str, Profile] | None = None) -> None:
        """Let an operator's own profiles come before the built-in ones."""
        self._known = {**BUILT_IN, **(own or {})}

    @classmethod
    def admit(cls, data: Any, file: str) -> "Profiles":
        """Validate a mapping of names to profiles; one with the name of a built-in profile says what differs from it.

        Raises SettingsInvalid naming file, field, value and fix.
        """
        if data is not None and not isinstance(data, dict):
            raise SettingsInvalid(f"{file}: not a mapping; write `NAME: {{strategy: conservative}}`")
        given: dict[Any, Any] = data or {}
        if len(given) > MOST:
            raise SettingsInvalid(f"{file}: {len(given)} profiles, at most {MOST} are allowed; remove some")
        profiles = cls({name: _admitted(name, fields, file) for name, fields in given.items()})
        for name in given:
            profiles._require_reviewer(name, file)
        return profiles

    def _require_reviewer(self, name: str, file: str) -> None:
        """Raise SettingsInvalid when the reviewer of a profile is that profile, or none that there is."""
        review = self._known[name].review
        reviewer = "" if review is None else review.reviewer
        where = f"{file}: {one_line(name, _LONGEST_NAME)}: review.reviewer"
        if reviewer and reviewer not in self._known:
            known = ", ".join(other for other in self if other != name)
            raise SettingsInvalid(f"{where}: no profile {one_line(reviewer, _LONGEST_NAME)!r}; use one of {known}")
        if reviewer == name:
            raise SettingsInvalid(f"{where}: {name!r} cannot review its own plans; name another profile")

    def __iter__(self) -> Any:
        """Return the names, sorted."""
        return iter(sorted(self._known))

    @property
    def models(self) -> frozenset[str]:
        """Return the models that profiles name."""
        return frozenset(profile.model for profile in self._known.values() if profile.model is not None)

    def named(self, name: str) -> Profile:
        """Return a profile; raises TaskInvalid that names those there are."""
        if name not in self._known:
            known = ", ".join(self)
            raise TaskInvalid(f"profile: no profile {one_line(name, _LONGEST_NAME)!r}; use one of {known}")
        return self._known[name]


def _admitted(name: Any, fields: Any, file: str) -> Profile:
    where = f"{file}: {one_line(str(name), _LONGEST_NAME)}"
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
        raise SettingsInvalid(f"{where}: not a name; write a string of at most {_LONGEST_NAME} characters")
    if fields is not None and not isinstance(fields, dict):
        raise SettingsInvalid(f"{where}: not a mapping of fields (value {one_line(repr(fields), 80)}); write {{...}}")
    built_in = _set(BUILT_IN[name]) if name in BUILT_IN else {}
    try:
        profile = Profile.admit({**built_in, **(fields or {})})
    except TaskInvalid as error:
        raise SettingsInvalid(f"{where}: {error}") from None
    return profile


def _set(noun: Frozen) -> dict[str, Any]:
    """Return the fields that were set, without defaults."""
    return {name: getattr(noun, name) for name in noun.model_fields_set}
