"""How one kind of server names a tool, its arguments and its answer, so that actions need not know."""

from collections.abc import Mapping
from typing import Any

from pydantic import field_validator

from toolbox.configuration.template import render
from toolbox.providers.answer import Answer, refused
from toolbox.providers.declaration import Strict


class ShapedCall(Strict):
    """Hold how one call of an action is made on one kind of server."""

    tool: tuple[str, ...]
    """The names the tool may have; the first that is offered counts."""
    arguments: dict[str, Any] | None = None
    """Templates over the arguments of the call; None passes them on as they are."""
    result: str = ""
    """Where in the server's answer the result stands, such as `data.messages`; empty for the whole answer."""
    succeeded: str | None = None
    """Where the answer says whether the call succeeded, for servers that report failures inside an answer."""
    error: str = "error"
    """Where the answer says then what went wrong."""

    @field_validator("tool", mode="before")
    @classmethod
    def _accept_one(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value

    def fill(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the server wants them, without those that are null. Raises ArgumentsInvalid."""
        filled = arguments if self.arguments is None else render(self.arguments, arguments)
        return {name: value for name, value in filled.items() if value is not None}

    def read(self, answer: Answer) -> Answer:
        """Return what the answer means."""
        if not answer.success:
            return answer
        if self.succeeded is not None and _at(answer.data, self.succeeded) is False:
            return refused(str(_at(answer.data, self.error) or ""))
        found = _at(answer.data, self.result)
        return Answer(success=True, data=answer.data if found is None else found)


Shape = dict[str, ShapedCall]


def _at(value: Any, path: str) -> Any:
    """Return what stands at a dotted path, or None."""
    for part in path.split(".") if path else ():
        value = value.get(part) if isinstance(value, dict) else None
    return value
