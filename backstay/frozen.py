"""The one shape all nouns share: frozen data that reads old history and forbids surprises only at the door."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from backstay.errors import TaskInvalid
from backstay.quoting import named, quoted

FAULTS = 5
"""How many faults one refusal tells."""


class Frozen(BaseModel):
    """Hold plain, frozen data; ignore unknown fields so that newer and older histories both decode."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def admit(cls, data: Any) -> Self:
        """Validate data that comes from outside and refuse what is unknown, naming field, value and fix.

        Raises TaskInvalid with one line per fault.
        """
        try:
            return cls.model_validate(data, extra="forbid")
        except ValidationError as error:
            raise TaskInvalid(first_faults(error, lambda fault: _explain(cls.__name__, fault))) from None

    def plain(self) -> dict[str, Any]:
        """Return the JSON form, as other programs read it."""
        return self.model_dump(mode="json", by_alias=True)


class PublicInput(Frozen):
    """Hold what people write in Python, JSON or a form: its constructor refuses unknown fields, at any depth.

    History is read without the constructor, so that newer and older ones both decode.
    """

    if not TYPE_CHECKING:

        def __new__(cls, *_: Any, **given: Any) -> Self:
            """Raise TaskInvalid with a line per unknown field; other faults are left to pydantic."""
            if given:
                _refuse_unknown(cls, given)
            return super().__new__(cls)


class Message(Frozen):
    """Hold what workflows and activities say to each other; a field that equals its default does not reach history.

    History is read with the default of today, so the default of a field never changes: a value that is to be usual from
    now on gets a new field. Only the fields of the message itself are left out. A noun in it, such as a task, keeps
    what somebody gave, even where that equals a default: people have signed it so. Nouns that cross the door are not
    messages: their schemas say which fields they have.
    """

    @model_serializer(mode="wrap")
    def without_defaults(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """Return the fields that say something; only the converter leaves out what is unset, and so asks for this."""
        told: dict[str, Any] = handler(self)
        if not info.exclude_unset:
            return told
        fields = type(self).model_fields
        return {
            name: value
            for name, value in told.items()
            if fields[name].is_required() or getattr(self, name) != fields[name].get_default(call_default_factory=True)
        }


def first_faults(error: ValidationError, explain: Callable[[Any], str]) -> str:
    """Return the first faults, one after the other; the sender decides their number and the length of names."""
    return _first(error.errors(include_url=False), explain)


def _first(faults: Sequence[Any], explain: Callable[[Any], str]) -> str:
    told = [explain(fault) for fault in faults[:FAULTS]]
    more = len(faults) - len(told)
    return "; ".join([*told, f"and {more:,} more faults"] if more else told)


def _refuse_unknown(noun: type[Frozen], given: dict[str, Any]) -> None:
    try:
        noun.model_validate(given, extra="forbid")
    except ValidationError as error:
        faults = [fault for fault in error.errors(include_url=False) if fault["type"] == "extra_forbidden"]
        if faults:
            raise TaskInvalid(_first(faults, lambda fault: _explain(noun.__name__, fault))) from None


def _explain(noun: str, fault: Any) -> str:
    field = ".".join(map(named, fault["loc"])) or noun
    shown = quoted(fault.get("input"), field)
    match fault["type"]:
        case "extra_forbidden":
            return f"{field}: unknown field (value {shown}); remove it or correct its name"
        case "missing":
            return f"{field}: required field is missing; add it"
        case _:
            return f"{field}: {fault['msg'].removeprefix('Value error, ')} (value {shown})"
