"""Tasks that are kept and started again and again: by a schedule, or by a trigger that another program sends."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from backstay.approvals.proof import KEEP, Binding
from backstay.authority import Principal
from backstay.bounds import MOST, Name
from backstay.budgets.budget import MICRO
from backstay.canonical import digest_of
from backstay.errors import TaskInvalid
from backstay.frozen import PublicInput
from backstay.policies.rule import parse_duration
from backstay.shown import one_line
from backstay.task.task import Task, too_long

Kind = Literal["schedule", "trigger"]
_FIRST = "start-"
"""How the workflow ids of starts begin; the run that is started has the rest of the id."""
_EVENT_DIGITS = 32
_DAY = 86_400
_CRON_FIELDS = 5
_ANY = ("*", "?")
"""What a field of a cron line begins with that restricts nothing; also with a step, which cron and Temporal read alike.
"""
_GIVEN_HERE = ("by", "proof", "follows")
"""Fields of a task that a standing one does not have: its author starts it, and each run begins anew."""


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("no time zone of that name; write one such as Europe/Berlin, or UTC") from None
    return name


Seconds = Annotated[float, BeforeValidator(parse_duration)]


class PerDay(PublicInput):
    """Limit what all runs of one standing task may spend on one day, which begins at midnight in its time zone."""

    max_llm_cost_usd: float = Field(gt=0, le=1_000_000, allow_inf_nan=False)
    """Cost of all model calls in US dollars; each run reserves its own ceiling of it before it starts."""
    max_runs: int | None = Field(default=None, ge=1, le=MOST)
    """Runs; None means no limit."""


class Times(PublicInput):
    """Say when a schedule starts runs: `cron` or `every`."""

    cron: str | None = Field(default=None, min_length=1, max_length=200)
    """Five fields: minute, hour, day of the month, month, day of the week."""
    every: Seconds | None = Field(default=None, ge=1, multiple_of=1)
    """A duration of whole seconds, such as 15m; counted from the beginning of 1970."""
    jitter: float = Field(default=0, ge=0, le=_DAY, allow_inf_nan=False)
    """Each start is put off by a random time of at most this many seconds."""
    overlap: Literal["skip", "buffer_one", "buffer_all", "cancel_other", "allow_all"] = "skip"
    """How it goes on when the run before has not ended."""
    catch_up: Seconds = Field(default=3600, ge=10)
    """A start that was due while Temporal was down is made up for if it is not older than this."""

    @model_validator(mode="after")
    def _says_when(self) -> Self:
        if (self.cron is None) == (self.every is None):
            raise ValueError("say when: either cron or every")
        if self.cron is not None and ("=" in self.cron or "#" in self.cron or not self.cron.isprintable()):
            raise ValueError("cron: holds more than fields; leave time zone and comment out, and set time_zone")
        if self.cron is not None and len(self.cron.split()) != _CRON_FIELDS:
            # Temporal reads a sixth as a year, where others have seconds first.
            raise ValueError("cron: needs five fields: minute, hour, day of the month, month, day of the week")
        return self

    def check(self) -> None:
        """Raise TaskInvalid for a cron line that Temporal reads otherwise than cron does.

        Of two restricted fields for days, cron takes the days that fit either, and Temporal those that fit both.
        """
        if self.cron is None:
            return
        _, _, of_month, _, of_week = self.cron.split()
        if not (of_month.startswith(_ANY) or of_week.startswith(_ANY)):
            raise TaskInvalid(
                f"times.cron: restricts both the day of the month ({one_line(of_month, 40)}) and the day of the week "
                f"({one_line(of_week, 40)}); add two schedules, each with * in place of one of them"
            )


class TriggerLimits(PublicInput):
    """Limit what a trigger takes."""

    max_bytes: int = Field(default=65_536, ge=2, le=262_144)
    """Of the body of one request."""
    per_minute: int = Field(default=30, ge=1, le=10_000)
    """Runs that it starts; further requests are refused until a minute is over."""


class StandingTask(PublicInput):
    """Keep what a schedule or a trigger starts, whose it is, and what it may spend."""

    kind: Kind
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,49}$")]
    by: Principal = Field(min_length=1)
    """Who adds it, and so starts its runs; counts only with a proof."""
    proof: Name | None = None
    """Proves `by`: signed for the update `keep` of `schedule-NAME` or `trigger-NAME`, with this as the payload."""
    time_zone: Annotated[str, Field(max_length=100), AfterValidator(_zone)] = "UTC"
    task: dict[str, Any]
    """The fields of the task."""
    definition: str = Field(default="", max_length=50)
    """The definition that is carried out, as the worker reads it when a run is started."""
    per_day: PerDay
    times: Times | None = None
    """Of a schedule."""
    door: TriggerLimits | None = None
    """Of a trigger."""

    @classmethod
    def admit(cls, data: Any) -> Self:
        """Validate one from outside; raises TaskInvalid naming field, value and fix."""
        standing = super().admit(data)
        if (refused := too_long(standing.task)) is not None:
            raise refused
        standing.check()
        return standing

    def check(self) -> None:
        """Raise TaskInvalid when its parts do not fit together."""
        if (self.times is not None, self.door is not None) != (self.kind == "schedule", self.kind == "trigger"):
            raise TaskInvalid(f"kind: a schedule has times, and a trigger a door; give what a {self.kind} has")
        if self.times is not None:
            self.times.check()
        if unfit := next((name for name in _GIVEN_HERE if name in self.task), None):
            raise TaskInvalid(f"task.{unfit}: is set when a run is started; leave it out")
        if self.kind == "trigger" and not self.definition:
            raise TaskInvalid("definition: required for a trigger; name the plan that it carries out")
        if self.kind == "trigger" and ("input" in self.task or "input_from" in self.task):
            raise TaskInvalid("task.input: is what the trigger is sent; leave it out")
        if self.definition and "plan" in self.task:
            raise TaskInvalid("definition: a definition is a plan; leave task.plan out")
        most = self.admitted({"text": self.definition} if self.definition else {}).budget.max_llm_cost_usd
        if most is None:
            raise TaskInvalid("task.budget.max_llm_cost_usd: none, so that no run could be reserved for; set a limit")
        if most > self.per_day.max_llm_cost_usd:
            raise TaskInvalid(
                f"per_day.max_llm_cost_usd: {self.per_day.max_llm_cost_usd:g} is less than one run may cost "
                f"({most:g}), so that none could start; raise it, or lower task.budget.max_llm_cost_usd"
            )

    def admitted(self, more: dict[str, Any]) -> Task:
        """Return the task with further fields; raises TaskInvalid."""
        return Task.admit({**self.task, **more})

    @property
    def user_id(self) -> str:
        """Return whose runs it starts."""
        return str(self.task.get("user_id") or self.by)

    @property
    def reserved_micro(self) -> int:
        """Return what one run reserves of the day's budget, in millionths of a US dollar."""
        most = self.admitted({"text": self.definition or self.name} if self.definition else {}).budget.max_llm_cost_usd
        return -round(-(most or 0) * MICRO)

    @property
    def line(self) -> str:
        """Return what it does, for people."""
        return self.definition or one_line(str(self.task.get("text") or "plan"), 200)

    def binding(self, namespace: str) -> Binding:
        """Return what the proof of its author is good for."""
        return Binding(namespace=namespace, workflow_id=f"{self.kind}-{self.name}", run_id="", update=KEEP)

    def day(self, now: float) -> str:
        """Return the day of a moment, as its time zone counts days."""
        return datetime.fromtimestamp(now, ZoneInfo(self.time_zone)).date().isoformat()


def start_id(queue: str, kind: Kind, name: str, event: str = "") -> str:
    """Return the workflow id of a start; Temporal adds the time to that of a schedule."""
    known = f"{_FIRST}{queue}-{kind}-{name}"
    return f"{known}-{digest_of([kind, name, event])[:_EVENT_DIGITS]}" if event else known


def run_id(start: str) -> str:
    """Return the workflow id of the run that a start leads to."""
    return start.removeprefix(_FIRST)
