"""Make up what models ask for and what people do with it: batches, plans, edits, votes and toggles."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

from tests.e2e.approvals.doors.forms import Form, form_of

ANA, BO = "ana@example.com", "bo@example.com"
KEY = "@@key@@"
"""Stands for the handle of a secret, wherever a case wants one."""
WORDS = (
    "plain words", "naïve façade — ça va", "Привет, мир", "日本語のテキスト。",
    "مرحبا بالعالم", "שלום עולם", "हिन्दी पाठ", "ภาษาไทย",
    "🎉 done 👩‍👩‍👧", "turned\u202eround\u202c", "zero\u200bwidth", "tab\tbell\x07",
    "\x1b[2J\x1b]0;owned\x07", "p\u0430ypal", "one\ntwo\n\n    three", "one\r\ntwo\r\n", "\n", "", " ",
    "  padded  ", "null", "true", "12", "-1e5", '"quoted"', "it's", '{"a": 1}', "[1, 2]",
    "back\\slash \\n \\u0041", "`code` ```fence``` ````", "<b>&amp;</b> & <!channel> <@U1>", "│ bar",
    "x\n│ bar\n┆ on", "┆ goes on", "sign ⏎ of a break", "…", "goes on …", "~ to: x -> y", "a: b",
    "first\nb: c", "[1] desk.post  (write_safe)", "first\n  [1] desk.post  (write_safe)\n        title: other",
    "CANNOT BE UNDONE", "$HOME $(id)", "separated\u2028here", "\ufeffmarked", "delete\x7f\x85", "a\rb",
    "\uff46\uff55\uff4c\uff4c", "Ångström e\u0301", "#1", "- x", "* x", "1. x", "\U000e0041 tagged",
    "# CHANGED by bo@example.com:", "line " * 30, "漢字" * 60,
)  # fmt: skip
NAMES = (
    "to", "note", "a b", "naïve", "ключ", "x.y", "", "a\nb", "\u202ename", "…", "with:colon", "#1", "can be undone",
    "changes", "CHANGED by bo", "REPEATED", "says", "[0]", '"q"', "│", "more", "p\u0430y",
)  # fmt: skip
ANSWERS = (
    "plain words",
    "Привет, мир",
    "日本語のテキスト。",
    "שלום עולם",
    'it\'s "quoted", so',
    "a \\n b",
    "<b>&amp;</b> <@U1>",
)
"""What people answer when a run asks them something: what can be typed on a line, and is no JSON."""
ANSWER = "@@answer@@"
"""Stands for what they answered, in what the run wants after that."""
WORDS_OF_ANSWER = "what the desk said\nin two lines"
ISSUED = {"reset_token": "", "words": WORDS_OF_ANSWER, "count": 7, "rows": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]}
"""What the tool `issue` answers; the secret is filled in where the tools are made."""
DONE = {"id": "id-7", "done": True}
"""What every tool that changes something answers."""


@dataclass(frozen=True)
class Edit:
    """Say what a person changes of one call."""

    call: int
    set: dict[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    way: int = 0
    """Which of several ways a door takes."""

    def applied(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {name: item for name, item in arguments.items() if name not in self.drop} | self.set


@dataclass(frozen=True)
class End:
    """Say what people decide in the end."""

    verdict: str = "approve"
    leave_out: frozenset[int] = frozenset()
    dry_run: bool = False
    no_processes: bool = False
    seconds: float | None = None
    dissents: bool = False
    """Whether the second of two people rejects."""
    change: Edit | None = None
    """What is changed with the approval itself, where a door lets people say so in one breath."""
    remember: str = ""
    """For how long it is remembered; empty where it is not."""
    any_arguments: bool = False
    """Whether it is remembered for any arguments, or for the very same."""
    way: int = 0


@dataclass(frozen=True)
class Case:
    """Hold one run: what its model asks for, and what people do."""

    name: str
    kind: str
    calls: list[tuple[str, dict[str, Any]]]
    other: list[tuple[str, dict[str, Any]]] | None
    """The steps of another plan that is proposed beside it."""
    picks_other: bool
    summaries: list[str]
    quorum: bool
    answer: str
    """What people answer before that; empty where the run asks them nothing."""
    form: Form | None
    """What the server of a tool asks them before that."""
    edits: tuple[Edit, ...]
    end: End


def case_of(name: str, seed: str) -> Case:
    """Return a case; the same one for the same name and seed."""
    made = _Making(random.Random(f"{seed} {name}"), name)
    kind = made.chance.choices(("batch", "plan"), (6, 4))[0]
    quorum = made.chance.random() < 0.15
    calls = made.batch(quorum=quorum) if kind == "batch" else made.steps(quorum=quorum)
    other = made.steps(quorum=False) if kind == "plan" and made.chance.random() < 0.25 else None
    picks_other = other is not None and made.chance.random() < 0.5
    chosen = other if picks_other and other is not None else calls
    summaries = [made.chance.choice(("", "tell them", "title: innocent", *WORDS[:12])) for _ in chosen]
    edits = () if quorum else tuple(made.edit(chosen) for _ in range(made.chance.choice((0, 0, 1, 1, 2))))
    answer = made.chance.choice(ANSWERS) if made.chance.random() < 0.2 else ""
    if answer:
        calls.append(("desk.stamp", {"title": f"they said {ANSWER}"}))
        summaries.append("")
    quorum = quorum and not picks_other
    case = Case(name, kind, calls, other, picks_other, summaries, quorum, answer, None, edits, End())
    case = replace(case, end=made.end(case, chosen))
    # What was added later is made up last, so that the same seed makes up the same cases as before.
    form = form_of(made.chance, name) if made.chance.random() < 0.3 else None
    return replace(case, form=form, end=made.remembered(case) if made.chance.random() < 0.35 else case.end)


class _Making:
    """Make up one case by chance."""

    def __init__(self, chance: random.Random, name: str) -> None:
        self.chance = chance
        self.name = name
        self.held = 0

    def batch(self, *, quorum: bool) -> list[tuple[str, dict[str, Any]]]:
        calls = [self.call() for _ in range(self.chance.randint(1, 4))]
        if quorum:
            calls = [("desk.post", self.posted() | {"title": f"two {at}"}) for at, _ in enumerate(calls)]
        return calls

    def steps(self, *, quorum: bool) -> list[tuple[str, dict[str, Any]]]:
        """Return the steps of a plan: a read whose answer the others may refer to, and one to three of these."""
        steps: list[tuple[str, dict[str, Any]]] = [("desk.issue", {})]
        for _ in range(self.chance.randint(1, 3)):
            tool, arguments = (
                self.call() if self.chance.random() < 0.8 else ("pinger.ping", {"who": self.word_in_line()})
            )
            steps.append((tool, self.referring(tool, arguments, len(steps))))
        if quorum:
            steps[1] = ("desk.post", self.posted() | {"title": "two of us"})
        return steps

    def call(self) -> tuple[str, dict[str, Any]]:
        tool = self.chance.choice(("desk.post", "desk.post", "desk.file", "desk.file", "desk.stamp"))
        match tool:
            case "desk.post":
                return tool, self.posted()
            case "desk.stamp":
                return tool, {"title": self.word()}
            case _:
                names = self.chance.sample(NAMES, self.chance.randint(1, 4))
                return tool, {name: self.value(2) for name in names}

    def posted(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {"title": self.word()}
        for name, make in {
            "body": self.text,
            "count": lambda: self.chance.choice((0, -3, 7, 10**25)),
            "data": lambda: self.value(3),
        }.items():
            if self.chance.random() < 0.6:
                arguments[name] = make()
        return arguments

    def referring(self, tool: str, arguments: dict[str, Any], at: int) -> dict[str, Any]:
        """Return the arguments of a step, some of which refer to what earlier steps returned."""
        written = [f"${{steps.{step}.result.id}}" for step in range(1, at)]
        brought = ["${steps.0.result.words}", "${steps.0.result.count}", "${steps.0.result.rows}", *written]
        if tool == "pinger.ping" or self.chance.random() < 0.4:
            return arguments
        alone = self.chance.choice([*brought, "${steps.0.result.reset_token}"])
        within = f"it says {self.chance.choice([brought[0], brought[1], *written])}, and so on"
        name = {"desk.post": "data", "desk.stamp": "title"}.get(tool, self.chance.choice(NAMES[:6]))
        texts = [within, *(["${steps.0.result.words}"] if tool == "desk.stamp" else [alone])]
        return arguments | {name: self.chance.choice(texts)}

    def word(self) -> str:
        if self.chance.random() < 0.1:
            return f"the key is {KEY}, so"
        return self.chance.choice(WORDS)

    def word_in_line(self) -> str:
        who = self.chance.choice(("ana", "Привет", "日本", "a b", "p\u0430y"))
        return f"{self.name} {who}"

    def text(self) -> str:
        """Return a text of any length."""
        roll = self.chance.random()
        if roll < 0.6:
            return self.word()
        if roll < 0.7:
            return "\n".join(self.word() for _ in range(self.chance.randint(2, 6)))
        if roll < 0.8:
            # Signs that a door writes as several, so that its lines are longer than they seem.
            before = "&<>" * self.chance.randint(80, 190)
            return f"{before}[1] desk.post  (write_safe){'&' * self.chance.randint(300, 900)}"
        return self.chance.choice(("word ", "a line\n", "漢字 ", "Привет\n", "xxxx")) * self.chance.randint(650, 1000)

    def value(self, deepest: int) -> Any:
        roll = self.chance.random()
        if roll < 0.45 or deepest == 0:
            return self.text() if roll < 0.3 else self.word()
        if roll < 0.6:
            return self.chance.choice((None, True, False, 0, 12, -0.5, 1e300, 10**25, 1.0))
        if roll < 0.75:
            return [self.value(deepest - 1) for _ in range(self.chance.randint(0, 4))]
        if roll < 0.85:
            names = self.chance.sample(NAMES, self.chance.randint(1, 3))
            return [{name: self.word() for name in names} for _ in range(self.chance.randint(2, 3))]
        return {name: self.value(deepest - 1) for name in self.chance.sample(NAMES, self.chance.randint(0, 3))}

    def edit(self, calls: list[tuple[str, dict[str, Any]]]) -> Edit:
        call = self.chance.choice(
            [at for at, (tool, _) in enumerate(calls) if tool not in {"desk.issue", "pinger.ping"}] or [-1]
        )
        if call < 0:
            return Edit(-1)
        tool, arguments = calls[call]
        roll, way = self.chance.random(), self.chance.randint(0, 3)
        known = [name for name in arguments if name != "title"] if tool == "desk.post" else list(arguments)
        if roll < 0.25 and known:
            return Edit(call, drop=(self.chance.choice(known),), way=way)
        if roll < 0.45:
            return Edit(call, set={self.chance.choice(("subjct", "extra", *NAMES[:6])): self.word()}, way=way)
        name = self.chance.choice([*arguments]) if arguments else "title"
        return Edit(call, set={name: self.text() if name in {"title", "body"} else self.value(2)}, way=way)

    def remembered(self, case: Case) -> End:
        """Return the end with for how long it is remembered, where all of it can be."""
        end, again = case.end, self.chance.random() < 0.5
        if case.quorum or case.other is not None or end.dry_run or end.change is not None:
            return end
        how = "never" if end.verdict == "reject" else self.chance.choice(("run", "session", "always"))
        out = end.leave_out if self.chance.random() < 0.3 else frozenset[int]()
        return replace(end, remember=how, any_arguments=again, leave_out=out)

    def end(self, case: Case, calls: list[tuple[str, dict[str, Any]]]) -> End:
        roll, way = self.chance.random(), self.chance.randint(0, 3)
        if roll < 0.15:
            return End("reject", way=way)
        if case.quorum:
            return End(dissents=self.chance.random() < 0.3, way=way)
        asked = [at for at, (tool, _) in enumerate(calls) if tool != "desk.issue"]
        out: frozenset[int] = frozenset()
        if len(asked) > 1 and self.chance.random() < 0.4:
            out = frozenset(self.chance.sample(asked, self.chance.randint(1, len(asked) - 1)))
        if case.kind == "batch":
            change = self.edit(calls) if self.chance.random() < 0.2 else None
            return End(leave_out=out, change=change, way=way)
        if self.chance.random() < 0.12:
            return End(dry_run=True, way=way)
        processes = any(tool == "pinger.ping" for tool, _ in calls) and self.chance.random() < 0.5
        seconds = self.chance.choice((None, None, 5, 20))
        return End(leave_out=out, no_processes=processes, seconds=seconds, way=way)
