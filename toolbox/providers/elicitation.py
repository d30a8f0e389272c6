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
    flat: bool = False
    """Whether it is asked over MCP, which has no form for answers within answers."""

    @property
    def in_call(self) -> bool:
        """Return whether it was asked while the call was under way, so that the call has been made once already."""
        return self.said is not None

    def plain(self) -> dict[str, Any]:
        """Return the JSON form."""
        asked = [asdict(request) for request in self.requests]
        return {"asked": asked, "state": self.state, "said": self.said, "failed": self.failed, "flat": self.flat}

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
            if fault is None and self.flat:
                fault = _unsendable(given)
            if fault is not None:
                return fault.replace("arguments", "answer" if len(self.requests) == 1 else f"answer.{request.key}", 1)
        return None

    def pair(self, content: Any) -> list[tuple[ElicitationRequest, Any]]:
        """Pair each request with its answer: a single form is answered by its fields, several by their keys."""
        if len(self.requests) == 1:
            return [(self.requests[0], content)]
        by_key = content if isinstance(content, dict) else {}
        return [(request, by_key.get(request.key)) for request in self.requests]


def _unsendable(given: Any) -> str | None:
    """Return what of an answer the protocol has no form for, so that it could not be sent."""
    if given is None:
        return None
    if not isinstance(given, dict):
        return "arguments: cannot be sent; the protocol takes fields with values only"
    for name, value in given.items():
        items = value if isinstance(value, list) else ()
        if isinstance(value, dict) or not all(isinstance(item, str) for item in items):
            return f"arguments.{name}: cannot be sent; the protocol takes text, numbers, true, false and lists of texts"
    return None


@dataclass(frozen=True, slots=True)
class InputResponse:
    """Hold what a person answered before the call is made again."""

    required: InputRequired
    content: Any
    declined: bool = False


def input_required_of(data: dict[str, Any]) -> InputRequired:
    """Return what `to_keep` wrote; a question that an older version kept has each form as it is."""
    requests = tuple(ElicitationRequest(**{**asked, "form": _form(asked["form"])}) for asked in data["asked"])
    more: Any = {name: data[name] for name in ("state", "said", "failed")}
    return InputRequired(requests=requests, flat=data.get("flat", False), **more)


def _form(kept: Any) -> Any:
    return json.loads(kept) if isinstance(kept, str) else kept
