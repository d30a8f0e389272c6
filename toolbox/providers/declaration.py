"""The declaration of an operator about one tool in toolbox.json."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from backstay.tools.tool import Safety


class Strict(BaseModel):
    """Hold frozen data of the operator's file and refuse what is unknown or of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CallTemplate(Strict):
    """Name a tool and the templates of its arguments."""

    tool: str
    """A tool of the same provider, or `provider.tool`."""
    arguments: dict[str, Any] = Field(default_factory=dict)


NOT_FALSE = "{{ result is not false }}"
"""What says that a check of a tool in Python has found the effect."""


class Check(CallTemplate):
    """Name a read-only call and the condition under which it proves that the effect took place."""

    applied_if: str
    """One `{{ expression }}` over `result` (of the check), `arguments` and `effect`."""
    result: str | None = None
    """One `{{ expression }}` that makes the lost answer of the tool from the check's answer; None takes that whole."""
    verify_is_final: bool = False
    """Whether a negative answer proves that nothing happened."""


class Declaration(Strict):
    """Hold all that the operator declares about one tool."""

    safety: Annotated[Safety | None, Field(strict=False)] = None
    idempotent: bool = False
    """Whether the same effect id sent twice takes effect once."""
    idempotency_argument: str | None = None
    """Which argument carries the effect id; the model never sees it."""
    idempotency_ttl: Annotated[float, Field(gt=0)] | None = None
    """For how many seconds `idempotent` holds; None means for ever."""
    timeout: Annotated[float, Field(gt=0, le=3600)] | None = None
    """For how many seconds it may take to answer; None leaves it to the provider and then to the engine."""
    succeeded_if: str | None = None
    """One `{{ expression }}` over `result`, `error`, `arguments` and `effect`: whether it says that it took effect."""
    failed_if: str | None = None
    """The same: whether an answer says that it took no effect."""
    undo: CallTemplate | None = None
    """What takes the effect back; its templates may use `result`, `arguments` and `effect`."""
    undo_by_effect_id: CallTemplate | None = None
    """What takes the effect back when its result is unknown; no `result` here."""
    verify: Check | None = None
    preview: CallTemplate | None = None
    """A read-only call to the same provider, whose answer people see before they decide; templates use `arguments`."""
    side_effects: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(default_factory=list)
    """What a call changes, in words for people."""
    simulate: dict[str, Any] | None = None
    """What it answers in a rehearsal; its templates may use `arguments`, and `token` for a value that nobody knows."""
    content: Literal["own", "others"] = "others"
    """Whose words its answers hold: `own` vouches that no stranger writes them."""
    egress: bool | None = None
    """Whether it reaches out, so that what it is called with leaves; None believes its server's `openWorldHint`."""
    audience: Literal["own", "public"] | None = None
    """Who may read what it is called with: `own`, nobody else than whoever the run works for; `public`, anybody.
    None: whoever uses its server, as far as it changes something or reaches out."""
    secret_arguments: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    """The arguments, by name or JSON pointer, that take a credential; a secret in another one is asked about."""
