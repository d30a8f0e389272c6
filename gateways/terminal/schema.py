"""The command `schema`: what editors check the operator's files by while they are written."""

import json
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from pydantic import TypeAdapter

from gateways.terminal.terminal import Terminal

DIALECT = "https://json-schema.org/draft/2020-12/schema"
File = Annotated[Literal["toolbox", "policy", "profiles", "task", "plan"], Parameter(help="The kind of file.")]


def schema(file: File, /) -> None:
    """Print the JSON Schema of a file, so that an editor can complete and check it.

    toolbox.json: write `"$schema": "./toolbox.schema.json"` in it, beside `mcpServers`
    YAML files: `# yaml-language-server: $schema=policy.schema.json` as the first line
    """
    Terminal().result(schema_text(_model(file)).rstrip("\n"))


def schema_text(model: Any, mode: Literal["validation", "serialization"] = "validation") -> str:
    """Return the JSON Schema of a model as a file holds it; one of what comes in refuses unknown fields."""
    found = TypeAdapter(model).json_schema(by_alias=True, mode=mode)
    found = _closed(found) if mode == "validation" else found
    return json.dumps({"$schema": DIALECT, **found}, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _model(file: str) -> Any:
    # Each is loaded only when it is asked for.
    match file:
        case "toolbox":
            from toolbox.configuration.configuration import Configuration

            return Configuration
        case "policy":
            from backstay.policies.policy import Policy

            return Policy
        case "profiles":
            from backstay.profile import Profile

            return dict[str, Profile]
        case "plan":
            from backstay.task.plan import Plan

            return Plan
        case _:
            from backstay.task.task import Task

            return Task


def _closed(schema: Any) -> Any:
    """Refuse unknown fields in every object that names its fields."""
    match schema:
        case dict():
            closed = {key: _closed(value) for key, value in schema.items()}
            return closed | ({"additionalProperties": False} if "properties" in schema else {})
        case list():
            return [_closed(value) for value in schema]
        case _:
            return schema
