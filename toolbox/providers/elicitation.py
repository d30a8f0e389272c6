"""What a server asks a person before it answers a call, and what the person replied: MCP elicitation as plain data."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from toolbox.schema import compile_schema, fault_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitationRequest:
    """Hold one thing that is asked: a message, and either a form to fill in or an address to visit."""

    key: str
    message: str
    form: dict[str, Any] | None = None
    """JSON Schema of the answer."""
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequired:
    """Hold all that one call of a tool asks at once."""

    requests: tuple[ElicitationRequest, ...]
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
        asked = [asdict(request) for request in self.requests]
        return {"asked": asked, "state": self.state, "said": self.said, "failed": self.failed}

    def to_keep(self) -> dict[str, Any]:
        """Return the JSON form with each form as text, since what is kept has its keys in the order of letters."""
        plain = self.plain()
        return plain | {"asked": [{**asked, "form": json.dumps(asked["form"])} for asked in plain["asked"]]}

    def fault(self, content: Any) -> str | None:
        """Return what is wrong with a person's answer in one line, or None."""
        for request, given in self.pair(content):
            if request.form is None:
                continue
            form = compile_schema(request.form)
            # Nobody could answer a form that cannot be used; the server decides what fits.
            fault = None if isinstance(form, str) else fault_of(form, given, left_to_the_server=True)
            if fault is not None:
                return fault.replace("arguments", "answer" if len(self.requests) == 1 else f"answer.{request.key}", 1)
        return None

    def pair(self, content: Any) -> list[tuple[ElicitationRequest, Any]]:
        """Pair each request with its answer: a single form is answered by its fields, several by their keys."""
        if len(self.requests) == 1:
            return [(self.requests[0], content)]
        by_key = content if isinstance(content, dict) else {}
        return [(request, by_key.get(request.key)) for request in self.requests]


@dataclass(frozen=True, slots=True)
class InputResponse:
    """Hold what a person answered before the call is made again."""

    required: InputRequired
    content: Any
    declined: bool = False


def input_required_of(data: dict[str, Any]) -> InputRequired:
    """Return what `to_keep` wrote; a question that an older version kept has each form as it is."""
    requests = tuple(ElicitationRequest(**{**asked, "form": _form(asked["form"])}) for asked in data["asked"])
    return InputRequired(requests=requests, state=data["state"], said=data["said"], failed=data["failed"])


def _form(kept: Any) -> Any:
    return json.loads(kept) if isinstance(kept, str) else kept
