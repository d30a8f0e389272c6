"""Lines that people had remembered while they decided: they replace the default, and nothing else."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from backstay.canonical import canonical, digest_of
from backstay.frozen import Frozen, PublicInput
from backstay.policies.condition import Judgement
from backstay.policies.rule import Given, Only, Rule
from backstay.provenance.source import ArgumentSources
from backstay.shown import one_line, shown_arguments
from backstay.tools.tool import Tool

Remember = Literal["run", "session", "always", "never"]
"""How long a decision is remembered; `never` remembers a rejection."""
_EVERY = "every run of this user"
HOLDS = {"": "nothing yet", "run": "this run", "session": "this session", "always": _EVERY, "never": _EVERY}
"""For what a line holds, as people are told everywhere."""
Scope = Literal["run", "session", "always"]
SESSION_S = 7 * 86400
"""How long a line for a session holds: nobody says when a session ends."""
MOST_LINES = 200
"""How many lines one user may have, and one run may add: every run carries them in its history."""
LONGEST_CONDITIONS = 5000
"""Characters of the conditions of a line, as JSON; nobody reads more, and runs carry them in their history."""
GRANTED_BY = "toolbox.json"
"""Whose word a line is that lets jobs of a plugin run."""
_SHOWN = 200
"""Characters of each argument that a line shows."""


def is_by_grant(ruling: str, tool: str) -> bool:
    """Return whether a ruling on a tool, as it is told, is that of a line which lets jobs of a plugin run."""
    return ruling.startswith(f"allow: accepted: {tool} by {GRANTED_BY} on ")


class Like(PublicInput):
    """Say which calls are like one that is decided, as it was shown to the person."""

    when: Given = None
    """What must hold of the arguments, as in an allow rule of the policy."""
    only: Only = ()
    """The only arguments that a call may have."""

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if not self.only:
            raise ValueError("only: name the arguments that such a call may have")
        if len(canonical([self.when, self.only])) > LONGEST_CONDITIONS:
            raise ValueError(f"longer than {LONGEST_CONDITIONS} characters as JSON; say less")
        return self


class AcceptedLine(Frozen):
    """Allow or deny one tool, as it was defined then, with any arguments or with the very same."""

    id: str = ""
    """Digest of what the line is about, so that the same line is kept once."""
    verdict: Literal["allow", "deny"]
    scope: Scope
    tool: str
    definition: str
    """The definition that was accepted; under another one the line is stale."""
    args_digest: str = ""
    """Empty: any arguments, or those that `when` and `only` let through."""
    when: Given = Field(default=None, exclude_if=lambda when: when is None)
    """What must hold of the arguments, as in an allow rule of the policy."""
    only: Only = ()
    """The only arguments that a call may have; none named: any arguments."""
    arguments: str = ""
    """The arguments, as people read them."""
    user_id: str = "singleton"
    """Only runs for this user obey it."""
    session_id: str = ""
    """Only runs of this session obey it; empty for other scopes."""
    by: str = ""
    """Whose word it is; of several who had to agree, all of them."""
    at: str = ""
    request: str = ""
    """The run and the request in which it was decided."""
    expires_at: float | None = None
    """In unix seconds."""

    def identified(self) -> "AcceptedLine":
        """Return the line with its id."""
        about: list[Any] = [self.verdict, self.scope, self.user_id, self.session_id]
        about += [self.tool, self.definition, self.args_digest]
        about += [self.when, sorted(self.only)] if self.is_learned else []
        return self.model_copy(update={"id": digest_of(about)[:12]})

    @property
    def bare(self) -> "AcceptedLine":
        """Return the line without what only people read, as runs carry it."""
        return self.model_copy(update={"arguments": "", "request": ""})

    @property
    def words(self) -> str:
        """Return the line as people read it in a ruling."""
        what = "accepted" if self.verdict == "allow" else "never"
        said = f"{what}: {self.tool} by {self.by} on {self.at}, {self.about} (line {self.id})"
        return one_line(said, 500)

    @model_validator(mode="after")
    def _allows_by_conditions(self) -> Self:
        if self.is_learned and (self.verdict == "deny" or self.args_digest):
            raise ValueError("when, only: a line with conditions allows, and has no digest of arguments")
        return self

    @property
    def is_learned(self) -> bool:
        """Return whether conditions say which arguments it is about."""
        return self.when is not None or bool(self.only)

    @property
    def about(self) -> str:
        """Return in words which arguments it is about."""
        if self.is_learned:
            return f"arguments {self._conditions.line.removeprefix('*').strip()}"
        return "these arguments" if self.args_digest else "any arguments"

    @property
    def _conditions(self) -> Rule:
        # The name of a tool is not a pattern.
        return Rule(tool="*", when=self.when, only=self.only)

    @property
    def expires(self) -> str:
        """Return when it ends as people read it; empty when it does not end by itself."""
        if self.expires_at is None:
            return ""
        return datetime.fromtimestamp(self.expires_at, UTC).isoformat(timespec="seconds")

    def in_time(self, now: float) -> bool:
        """Return whether the line has not expired."""
        return self.expires_at is None or now < self.expires_at

    def misfit(self, tool: Tool, arguments: dict[str, Any], sources: ArgumentSources | None = None) -> str:
        """Return why the line is not about a call; empty when it is. `sources`: where its arguments came from."""
        if tool.name != self.tool:
            return "another tool"
        if not tool.is_defined_by(self.definition):
            return "stale: the tool was defined otherwise"
        if self.args_digest:
            return "" if self.args_digest == digest_of(arguments) else "other arguments"
        if self.verdict == "allow" and reaches_out(tool):
            return "the tool reaches out, so only exactly the same arguments can be accepted"
        if not self.is_learned:
            return ""
        holds, _ = self._conditions.applies(tool.name, arguments, allows=True, sources=sources)
        return "" if holds is Judgement.HOLDS else "other arguments, or they came from elsewhere"


def reaches_out(tool: Tool) -> bool:
    """Return whether a call that only reads carries its arguments away."""
    return tool.egress and not tool.effectful


def line_about(
    lines: Sequence[AcceptedLine], tool: Tool, arguments: dict[str, Any], sources: ArgumentSources | None = None
) -> AcceptedLine | None:
    """Return the line that decides about a call, one that denies before one that allows."""
    fitting = [line for line in lines if not line.misfit(tool, arguments, sources)]
    return next((line for line in fitting if line.verdict == "deny"), next(iter(fitting), None))


def remembered_words(line: dict[str, Any]) -> Iterator[str]:
    """Yield for what one line of a decision holds, as the run answers it, and what lets it hold further."""
    yield f"remembered for {HOLDS.get(line['holds'], line['holds'])}: {line['tool']}"
    if line["waits"]:
        yield f"further it waits: {line['waits']} (backstay policy accept {line['line']})"


def arguments_shown(arguments: dict[str, Any]) -> str:
    """Return arguments in one line for people."""
    return one_line(canonical(shown_arguments(arguments, _SHOWN).arguments), 2 * _SHOWN)
