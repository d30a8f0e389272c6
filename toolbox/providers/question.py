"""What a server wants to know from a person before it answers a call."""

from dataclasses import dataclass
from typing import Any

from mcp.types import ElicitRequest, ElicitRequestURLParams, ElicitResult, InputRequiredResult

from toolbox.providers.plain import plain
from toolbox.schema import compile_schema, fault_of

Content = dict[str, str | int | float | bool | list[str] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Hold one thing that is asked: words, and either a form to fill in or an address to visit."""

    key: str
    message: str
    form: dict[str, Any] | None = None
    """JSON Schema of the answer."""
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Hold all that one call of a tool asks at once."""

    asked: tuple[Asked, ...]
    state: str | None = None
    """What the server wants back verbatim; None for a server of an older revision."""
    said: str | None = None
    """What an older server answered when it was told that nobody had answered."""
    failed: bool = False
    """Whether that answer was an error."""

    @property
    def in_call(self) -> bool:
        """Return whether it was asked while the call was under way, so that the call has been made once already."""
        return self.said is not None

    def plain(self) -> dict[str, Any]:
        """Return the JSON form."""
        asked = [{"key": one.key, "message": one.message, "form": one.form, "url": one.url} for one in self.asked]
        return {"asked": asked, "state": self.state, "said": self.said, "failed": self.failed}

    def fault(self, content: Any) -> str | None:
        """Return what is wrong with a person's answer in one line, or None."""
        for asked, given in self._given(content):
            if asked.form is None:
                continue
            compiled = compile_schema(asked.form)
            fault = compiled if isinstance(compiled, str) else fault_of(compiled, given)
            if fault is not None:
                return fault.replace("arguments", "answer" if len(self.asked) == 1 else f"answer.{asked.key}", 1)
        return None

    def responses(self, content: Any, *, declined: bool) -> dict[str, ElicitResult]:
        """Return what the server is told, by its own keys."""
        if declined:
            return {one.key: ElicitResult(action="decline") for one in self.asked}
        return {
            one.key: ElicitResult(action="accept", content=None if one.form is None else given)
            for one, given in self._given(content)
        }

    def _given(self, content: Any) -> list[tuple[Asked, Any]]:
        """Pair what is asked with what was answered: one form is answered by its fields, several by their keys."""
        if len(self.asked) == 1:
            return [(self.asked[0], content)]
        by_key = content if isinstance(content, dict) else {}
        return [(one, by_key.get(one.key)) for one in self.asked]


def question_of(data: dict[str, Any]) -> Question:
    """Return the question that `plain` wrote."""
    return Question(
        asked=tuple(Asked(**one) for one in data["asked"]),
        state=data["state"],
        said=data["said"],
        failed=data["failed"],
    )


def asked_by(params: Any, key: str = "answer") -> Asked:
    """Return one elicitation, whatever its mode."""
    if isinstance(params, ElicitRequestURLParams):
        return Asked(key=key, message=params.message, url=params.url)
    return Asked(key=key, message=params.message, form=plain(params.requested_schema))


def required_input(result: InputRequiredResult) -> Question | None:
    """Return what a server of the newest revision asks; None when it asks for what only a host with a model offers."""
    requests = result.input_requests or {}
    if not requests or not all(isinstance(request, ElicitRequest) for request in requests.values()):
        return None
    asked = tuple(asked_by(request.params, key) for key, request in sorted(requests.items()))
    return Question(asked=asked, state=result.request_state)
