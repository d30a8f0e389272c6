"""Turn the questions of an MCP server into elicitation requests, and replies into its elicitation results.

A server of the newest revision asks by returning InputRequiredResult. An older one asks over the open connection, in
the middle of a call, and does not say which call; or it refuses the call until an address was visited.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mcp import MCPError
from mcp.types import (
    URL_ELICITATION_REQUIRED,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
)
from pydantic import ValidationError

from toolbox.providers.elicitation import ElicitationRequest, InputRequired, InputResponse
from toolbox.providers.json_safe import json_safe

VISIT = "backstay:visit"
"""Marks the question whether a person has visited an address; its server asked nothing, so no answer is sent."""
ELICITS = "elicitation/create"
_WORDLESS = "(the server asks without a message)"


def input_required(result: InputRequiredResult) -> InputRequired | None:
    """Return what a server of the newest revision asks; None when it asks for what only a host with a model offers.

    Without any request it wants nothing but its state back.
    """
    asked = result.input_requests or {}
    if not all(isinstance(request, ElicitRequest) for request in asked.values()):
        return None
    requests = tuple(_request(request.params, key) for key, request in asked.items())
    return InputRequired(requests=requests, state=result.request_state, flat=True)


def readable_requests(asked: Any) -> Any:
    """Return the requests of a server by its keys, of which the elicitations are readable; any other value as it is."""
    if not isinstance(asked, dict):
        return asked
    return {
        key: {**request, "params": readable_params(request.get("params"))}
        if isinstance(request, dict) and request.get("method") == ELICITS
        else request
        for key, request in asked.items()
    }


def readable_params(params: Any) -> dict[str, Any]:
    """Return what a server asks as the client accepts it: where it leaves out a field, the least stands that asks."""
    given = _said(params)
    if "url" in given and "requestedSchema" not in given:
        return {"message": _WORDLESS, "mode": "url", **given}
    form = {"type": "object", "properties": {}, **_said(given.get("requestedSchema"))}
    return {"message": _WORDLESS, **given, "requestedSchema": form}


def _said(value: Any) -> dict[str, Any]:
    """Return the fields of an object that say something; none of any other value."""
    return {name: said for name, said in value.items() if said not in (None, "", [])} if isinstance(value, dict) else {}


def visit_required(error: MCPError) -> InputRequired | None:
    """Return which address a server of revision 2025-11-25 wants visited before it answers a call; None without any.

    It does nothing before that. Of several addresses it asks for the rest when it is called again.
    """
    if error.code != URL_ELICITATION_REQUIRED:
        return None
    data = error.error.data
    listed = data.get("elicitations") if isinstance(data, dict) else None
    for asked in listed if isinstance(listed, list) else ():
        with suppress(ValidationError):
            params = ElicitRequestURLParams.model_validate(readable_params(asked))
            return InputRequired(requests=(_request(params, "answer"),), state=VISIT)
    return None


def elicit_results(response: InputResponse) -> dict[str, ElicitResult]:
    """Return what the server is told, by its own keys."""
    if response.declined:
        return {request.key: ElicitResult(action="decline") for request in response.required.requests}
    return {
        request.key: ElicitResult(action="accept", content=None if request.form is None else given)
        for request, given in response.required.pair(response.content)
    }


@dataclass(slots=True, eq=False)  # calls that look alike are still different calls
class CallElicitations:
    """Hold what was asked in the middle of one call."""

    reply: InputResponse | None = None
    unanswered: list[ElicitationRequest] = field(default_factory=list)

    def answer(self, params: Any) -> ElicitResult:
        """Answer with the reply when it fits; otherwise keep the request and tell the server that nobody answered."""
        request = _request(params, f"answer{len(self.unanswered) + 1}" if self.unanswered else "answer")
        if self.reply is not None:
            for known in self.reply.required.requests:
                if replace(known, key=request.key) == request:
                    return elicit_results(self.reply)[known.key]
        self.unanswered.append(request)
        return ElicitResult(action="cancel")


class ElicitationRouter:
    """Find the call that an elicitation belongs to; a server of an older revision does not say."""

    def __init__(self) -> None:
        """Begin without calls."""
        self._calls: list[CallElicitations] = []
        self.used = False
        """Whether this server has ever asked: its calls must then run one after another."""

    @contextmanager
    def collect(self, reply: InputResponse | None) -> Generator[CallElicitations]:
        """Collect the elicitations of one call."""
        call = CallElicitations(reply)
        self._calls.append(call)
        try:
            yield call
        finally:
            self._calls.remove(call)

    async def elicit(self, context: Any, params: Any) -> ElicitResult:
        """Answer one elicitation; with several open calls it is unclear which one asks, so it gets no answer."""
        self.used = True
        return self._calls[0].answer(params) if len(self._calls) == 1 else ElicitResult(action="cancel")


def _request(params: Any, key: str) -> ElicitationRequest:
    if isinstance(params, ElicitRequestURLParams):
        return ElicitationRequest(key=key, message=params.message, url=params.url)
    return ElicitationRequest(key=key, message=params.message, form=json_safe(params.requested_schema))
