"""The facts of a tool that the workflow must know in order to rule on it; schemas stay on the worker."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from backstay.frozen import Frozen, Message
from backstay.provenance.source import ArgumentSources
from backstay.shown import ShownArguments
from backstay.tools.execution import JailUse
from backstay.tools.server_task import ServerTask


class Elicitation(Frozen):
    """Show a server's question; its words are a stranger's, redacted and cut."""

    message: str
    url: str | None = None
    """An address that the person is asked to visit."""
    form: dict[str, Any] | None = Field(default=None)
    """JSON Schema of the answer; None when nothing but consent is asked."""
    sealed: str
    """Ref of the whole question, which is handed back with the answer."""
    said: str | None = None
    """What the server did without an answer, in its own words; None when it waits for one."""


class OutcomeSource(Frozen):
    """Tell who found out that an effect took place whose answer is lost."""

    effect: int
    by: str


class Safety(StrEnum):
    """Class a tool by the worst it can do; the order is the order of danger."""

    READ_ONLY = "read_only"
    WRITE_SAFE = "write_safe"
    RESTRICTED_WRITE = "restricted_write"

    @property
    def level(self) -> int:
        """Return 0, 1 or 2; higher is more dangerous."""
        return list(Safety).index(self)


BUILTIN = frozenset({"fs", "shell"})
"""The providers that work in the run's workspace."""


DELEGATE = "engine.delegate"
"""The name under which the policy rules on what a run gives to a sub-run."""
ONLY_MODELS_DELEGATE = f"{DELEGATE}: no step of a plan and no program delegates; the model calls delegate by itself"


def _is_none(value: object) -> bool:
    return value is None


LONGEST_CALL_S = 600.0
"""For how many seconds a call may take at most that says so itself."""


class WorkspaceLimits(Frozen):
    """Narrow what one call may use of its jail; nothing here raises what the worker allows."""

    memory_mb: int | None = Field(default=None, ge=64, exclude_if=_is_none)
    """Megabytes of all processes together."""
    cpu_s: int | None = Field(default=None, ge=1, exclude_if=_is_none)
    """Seconds of processor time of each process."""
    artifacts_mb: int | None = Field(default=None, ge=1, exclude_if=_is_none)
    """Megabytes that may be written to the workspace."""

    @property
    def words(self) -> str:
        """Return the limits as people read them."""
        said = {"memory_mb": "{} MB of memory", "cpu_s": "{} s of processor time", "artifacts_mb": "{} MB written"}
        return ", ".join(words.format(most) for name, words in said.items() if (most := getattr(self, name)))

    def narrowing(self, **worker: int) -> dict[str, int]:
        """Return, of each limit of the worker's, the lower of its value and the one here."""
        return {name: min(most, getattr(self, name) or most) for name, most in worker.items()}


class Tool(Message):
    """Describe one tool in a few hundred bytes of history."""

    name: str
    """`provider.tool`, as policies write it."""
    safety: Safety = Safety.RESTRICTED_WRITE
    definition: str = ""
    """First 16 hex digits of the definition's hash; a call under another hash is asked about again."""
    earlier_definition: str = ""
    """The same of the hash that older versions gave it, for which the order of every list counted; empty where that is
    the same."""
    changed: bool = False
    """Whether the definition is none of those last allowed, so that a call is asked about."""
    undo: str | None = None
    """How an effect of this tool is undone, in one line; None if it cannot be."""
    undo_tool: str | None = None
    """The tool that would be called for it, `provider.tool`."""
    undo_calls: tuple[str, ...] = ()
    """Other tools that the tool may call on its way that would be called for it."""
    undo_by_effect_id: bool = False
    """Whether it can be undone even when its outcome is unknown."""
    undo_by_id: str = ""
    """How it is undone then, in one line."""
    undo_by_id_tool: str = ""
    """The tool that would be called then, which need not be the one that is called for a known answer."""
    verify: bool = False
    """Whether the toolbox declares a read-only check of what happened."""
    verify_is_final: bool = False
    """Whether a negative check proves that nothing happened."""
    idempotent: bool = False
    """Whether the operator declares that the same effect id sent twice takes effect once."""
    serial: bool = False
    """Whether calls to this tool's provider run one after another."""
    parallel: bool = False
    """Whether writes to this tool's provider that are decided together may be made at the same time."""
    previewed: bool = False
    """Whether what a call would change can be shown before it is made."""
    side_effects: tuple[str, ...] = ()
    """What a call changes, in the operator's words."""
    deadline_s: float | None = None
    """How long it may take to answer, when the operator says so."""
    timed: bool = False
    """Whether its argument `timeout` says how long one call may take, which is no longer than the operator says."""
    content: Literal["own", "others"] = "others"
    """Whose words its answers hold: a trusted server still carries what strangers wrote."""
    egress: bool = False
    """Whether a call that only reads reaches out, so that what it is called with leaves."""
    audience: Literal["own", "public"] | None = None
    """Who may read what it is called with; None: whoever uses its server."""
    secret_arguments: tuple[str, ...] = ()
    """The arguments, by name or JSON pointer, that are made to take a secret."""
    judged: bool = False
    """Whether a check of the operator's own looks at its calls."""
    calls: tuple[str, ...] = ()
    """Other tools that it may call on its way, `provider.tool`; a ruling on it is a ruling on them."""
    undoes: str = Field(default="", exclude_if=lambda undoes: not undoes)
    """Of the tool that takes an effect back: whose effect that is."""
    starts_process: bool = False
    """Whether a call starts a process: a command in the workspace, or the program of a plugin."""

    def is_defined_by(self, definition: str) -> bool:
        """Return whether a definition that was ruled on or accepted is still that of the tool."""
        return definition == self.definition or (bool(definition) and definition == self.earlier_definition)

    @property
    def provider(self) -> str:
        """Return the part before the first dot."""
        return self.name.partition(".")[0]

    @property
    def undo_declared(self) -> str | None:
        """Return how an effect is undone that is known to have taken place, in one line; None if it cannot be."""
        return self.undo or self.undo_by_id or None

    @property
    def undo_before_answer(self) -> str | None:
        """Return how an effect is undone of which nobody knows yet whether an answer will tell, in one line."""
        if not self.undo_by_id or self.undo_by_id == self.undo:
            return self.undo
        return self.undo_by_id if self.undo is None else f"{self.undo}; if its answer is lost: {self.undo_by_id}"

    @property
    def effectful(self) -> bool:
        """Return whether its calls may change the world."""
        return self.safety is not Safety.READ_ONLY


class PreviewedCall(Message):
    """Name one call that a person is to see the consequences of."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)


DECIDED_BY = "decided_by_people"
"""Under which name an answer tells the model what people changed of a call, and what they said."""


class ByPerson(Frozen):
    """Say what people did to a call before it was made; the model is told."""

    by: str
    """Who let it be made."""
    comments: tuple[str, ...] = ()
    """What they said about it."""
    sent: dict[str, Any] = Field(default_factory=dict)
    """The arguments that they changed, as they are shown."""
    without: tuple[str, ...] = ()
    """The arguments that they left out."""
    args_digest: str = ""
    """The digest of all arguments, where they changed some."""

    def told(self) -> dict[str, Any]:
        """Return it as the model is told, with nothing that says nothing."""
        said: dict[str, Any] = {"by": self.by}
        said |= {"comment": " ".join(self.comments)} if self.comments else {}
        said |= {"sent_with_other_arguments": self.sent} if self.sent else {}
        said |= {"sent_without": list(self.without)} if self.without else {}
        return said | ({"args_digest": self.args_digest} if self.args_digest else {})


class ToolCall(Frozen):
    """Name one call of one tool with its arguments."""

    id: str
    """The model's own call id, or a stable one given by the plan."""
    tool: Tool
    arguments: dict[str, Any] = Field(default_factory=dict)
    """As decided: secrets are handles, big leaves are refs, plan references are still references."""
    reason: str = ""
    sources: ArgumentSources | None = None
    """Where the arguments came from; None where nobody needs to know."""
    limits: WorkspaceLimits | None = None
    """What it may use of its jail, when that is less than usual."""
    by_person: ByPerson | None = None
    """What people did to it; None where they changed nothing and said nothing."""
    resolved_key: str = ""
    """By what it is known as a write with what its references bring; empty where it has none."""

    @property
    def deadline_s(self) -> float | None:
        """Return how long it may take to answer, when the operator or the call itself says so."""
        most, wanted = self.tool.deadline_s, self.arguments.get("timeout") if self.tool.timed else None
        if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not 0 < wanted <= LONGEST_CALL_S:
            return most
        return float(wanted if most is None else min(wanted, most))

    @property
    def effectful(self) -> bool:
        """Return whether the call may change the world."""
        return self.tool.effectful


class ToolResult(Message):
    """Tell how a call ended without carrying its payload."""

    success: bool
    ref: str | None = None
    """The stored result record: digest, full shown form, sealed raw form."""
    error: str | None = None
    """One redacted line; None on success."""
    reason: str | None = None
    """The same with its line breaks and at more length, for the model, where it says more than the line."""
    error_type: str | None = None
    """A name from errors.py, or `ToolError` when the tool itself reported the fault."""
    rejected_by: str = ""
    """Who rejected the call, where somebody did."""
    timed_out: bool = False
    """Whether no answer came by its deadline."""
    undo: str | None = None
    """What would undo this effect, shown form; set when it was bound with the outcome."""
    settle_in_s: float = 0
    """For an unknown outcome: how long until the request can no longer be under way."""
    free_number: int = 0
    """For an effect that only has the number of one of a sub-run, and was never sent under it: a number to send it
    under; 0 for any other conflict."""
    ended: bool = False
    """For an unknown outcome: whether the process of the call was seen to end, so that the next one may begin."""
    recorded: bool = False
    """Whether an earlier send's recorded outcome was returned instead of sending."""
    settled: OutcomeSource | None = None
    """Set when it is known to have taken place, and its answer is not."""
    question: Elicitation | None = None
    """What the tool's server asks before it continues; the call is made again with the answer."""
    task: ServerTask | None = None
    """The task by which its server answers later; None when it has answered."""
    verified: bool | None = None
    """For a verify: whether the check says that the effect took place."""
    verify_is_final: bool = False
    """For a verify: whether its "no" proves that the effect did not take place."""
    private: bool = False
    """Whether its server labelled the answer so that not everybody may read it."""
    snippet: str = ""
    """The beginning of the answer, on one line, for the event of the call."""
    sent: ShownArguments | None = None
    """What was sent, in short, where references were in the arguments."""
    untold: bool = False
    """Whether the event of the call could not be left in the store."""
    marked: str = ""
    """Of a program whose own text begins with a marker: that text, without secrets."""
    cached: bool = False
    """Whether the answer is that of an earlier call, which the provider kept."""
    simulated: bool = False
    """Whether it was foretold in a rehearsal, and not made."""
    resolved: dict[str, Any] | None = None
    """For a rehearsed call: its arguments with what references bring, as it would be sent."""
    size: str = ""
    """In words, the size of an answer that is so large that the model is shown a digest; there is no snippet then."""
    used: JailUse | None = None
    """What the jail of a command used."""


TRUSTED = "trusted"
"""The field of a stored hit that says whether the operator vouches for what its server says of the tool."""


class Hit(Frozen):
    """One answer of `search_tools`."""

    provider: str
    tool: str
    """`provider.tool`."""
    short_description: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    """summary: type by name, a trailing `?` marks optional; full: the JSON Schema."""
    available: bool = True
    reason: str | None = None
    """Why it is not available."""
    path: str = ""
    """Where the tool's own file would lie beneath the toolbox root."""
    mcp_tool_name: str = ""


def tool_result(
    tool: str, data: Any, *, error: str | None = None, kind: str = "", happened: bool = False, **context: Any
) -> dict[str, Any]:
    """Return how a call ended, as people and programs are told: `{success, data, context, error, trace}`.

    With `happened`, it took place and its answer is lost. The trace names what was done, and never a value.
    """
    success = error is None or happened
    answered = "succeeded" if success else f"failed: {kind}"
    ended = "took place, and its answer is lost" if happened else answered
    effect = context.get("effect")
    trace = [f"called {tool}", *([] if effect is None else [f"as effect {effect}"]), ended]
    known = {"tool": tool, "effect": None, "ref": None, "undo": None, "cached": False, "simulated": False, **context}
    return {"success": success, "data": data, "context": known, "error": error, "trace": trace}
