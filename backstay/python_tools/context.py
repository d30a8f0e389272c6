"""The call that a tool in Python is in: what it may know and do, and the errors by which it answers."""

from collections.abc import Mapping
from typing import Any, TypeVar, overload

from pydantic import TypeAdapter, ValidationError

Wanted = TypeVar("Wanted")


class ToolError(Exception):
    """The tool failed and changed nothing; the text is for the model."""


class Retry(ToolError):
    """The model should call the tool again in another way; the text says how. Nothing was changed."""


class CallRefused(ToolError):
    """The tool may not do this here; the text says what to change in it."""


class Declined(ToolError):
    """The person who was asked declined."""


class AnswerNeeded(BaseException):
    """The tool waits for a person; it is run again with the answer. It passes through `except Exception`."""

    def __init__(self, question: str, schema: Any) -> None:
        """Ask for an answer that fits a type or a JSON Schema; None takes any answer."""
        super().__init__(question)
        self.question = question
        self._adapter: TypeAdapter[Any] | None = None
        if schema is not None and not isinstance(schema, dict):
            self._adapter = TypeAdapter(schema)
        self.schema: dict[str, Any] | None = schema if self._adapter is None else self._adapter.json_schema()

    def admit(self, answer: Any) -> Any:
        """Return a person's answer as the type that was asked for. Raises CallRefused where it does not fit."""
        if self._adapter is None:
            return answer
        try:
            return self._adapter.validate_python(answer)
        except ValidationError as error:
            raise CallRefused(f"the answer does not fit: {error.errors()[0]['msg']}") from None


class ToolContext:
    """Tell a tool for whom it is called, give it secrets, and let it call other tools and ask a person.

    A tool gets one if it has a parameter of this type. The model does not see that parameter.
    """

    def __init__(
        self,
        *,
        user_id: str = "singleton",
        session_id: str = "",
        effect_id: str = "",
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        """Hold what is known of the call."""
        self.user_id = user_id
        """For whom the run works."""
        self.session_id = session_id
        """The session that the task names; empty if it names none."""
        self.effect_id = effect_id
        """The same each time this effect is tried: an idempotency key. Empty for a tool that only reads."""
        self._secrets = dict(secrets or {})

    def secret(self, name: str) -> str:
        """Return a value that `secrets` in toolbox.json names. Raises CallRefused if it names none."""
        if name not in self._secrets:
            known = ", ".join(sorted(self._secrets)) or "none"
            raise CallRefused(f"there is no secret {name!r} (known: {known}); add it to `secrets` in toolbox.json")
        return self._secrets[name]

    async def read(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool that `reads` names, any number of times. Raises ToolError when it fails."""
        raise CallRefused(f"no tools can be called here, so {tool!r} cannot be read")

    async def write(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool that `writes` names, once: that call is the effect. Raises ToolError when it fails."""
        raise CallRefused(f"no tools can be called here, so {tool!r} cannot be written")

    @overload
    async def ask(self, question: str, schema: type[Wanted]) -> Wanted: ...
    @overload
    async def ask(self, question: str, schema: dict[str, Any] | None = None) -> Any: ...
    async def ask(self, question: str, schema: Any = None) -> Any:
        """Ask a person, before anything is changed; the function runs again from its beginning with the answer.

        `schema` is a type or a JSON Schema. Raises Declined when the person declines.
        """
        raise CallRefused("nobody can be asked here")
