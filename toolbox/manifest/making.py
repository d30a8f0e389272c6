"""Make a manifest of a catalog: without secrets, and with what the operator's policy denies."""

from dataclasses import replace
from typing import Any

from backstay.policies.policy import Policy, forbids
from backstay.redaction.redactor import Redactor, mask
from backstay.tools.tool import Safety
from toolbox.bindings.binding import Binding
from toolbox.bindings.package import bound
from toolbox.catalog.catalog import Catalog, path_of
from toolbox.catalog.definition import Definition
from toolbox.catalog.naming import file_name
from toolbox.configuration.template import describe
from toolbox.manifest.manifest import Manifest, ManifestParameter, ManifestProvider, ManifestTool

_MOST = 50


def masked(value: Any, redactor: Redactor) -> Any:
    """Return the value with every secret masked that is known or has a form of its own.

    Names tell nothing here: a schema speaks of a `token` where it says that there is one, and must stay a schema.
    """
    match value:
        case str():
            return _text(value, redactor)
        case dict():
            return {_text(str(key), redactor): masked(item, redactor) for key, item in value.items()}
        case list():
            return [masked(item, redactor) for item in value]
        case bool() | None:
            return value
        case _:
            # A secret may be all digits.
            text = repr(value)
            shown = _text(text, redactor)
            return value if shown == text else shown


def _text(text: str, redactor: Redactor) -> str:
    shown: list[str] = []
    while (found := redactor.secret_in(text)) is not None:
        start, end, kind = found
        shown += [text[:start], mask(kind, None)]
        # Each one costs a look at all that follows; what holds so many is no description.
        text = text[end:] if len(shown) < 2 * _MOST else ""
    return "".join([*shown, text]) if shown else text


def redacted(catalog: Catalog, redactor: Redactor) -> tuple[list[Definition], list[str]]:
    """Return the catalog's tools by name without any secret, and the problems, with those whose very name holds one."""
    shown: list[Definition] = []
    problems = [masked(problem, redactor) for problem in catalog.problems]
    for definition in sorted(catalog.definitions.values(), key=lambda one: one.name):
        secret = redactor.secret_in(definition.name)
        if secret is not None and secret[2] == "known":
            problems.append(f"{definition.provider}: a tool is left out because its name holds a secret")
            continue
        undo = definition.tool.undo
        shown.append(
            replace(
                definition,
                tool=definition.tool.model_copy(update={"undo": None if undo is None else masked(undo, redactor)}),
                description=masked(definition.description, redactor),
                parameters=masked(definition.parameters, redactor),
                output_schema=masked(definition.output_schema, redactor),
            )
        )
    return shown, problems


def make_manifest(
    user_id: str, catalog: Catalog, *, policy: Policy, redactor: Redactor
) -> tuple[Manifest, list[Definition]]:
    """Return the manifest of a user's catalog and the definitions it shows; run it off the event loop."""
    definitions, problems = redacted(catalog, redactor)
    bindings = {one.tool: one for one in bound(definitions, inline=True)}
    tools = {one.name: _tool(one, bindings[one.name], catalog, policy=policy, redactor=redactor) for one in definitions}
    granted = {name: _provider(name, catalog, tools, redactor) for name in catalog.kinds}
    withheld = {
        name: ManifestProvider(name=name, granted=False, available=False, reason=reason, path=_place(name))
        for name, reason in catalog.withheld.items()
    }
    manifest = Manifest(
        user_id=user_id,
        version=catalog.version,
        providers=dict(sorted((granted | withheld).items())),
        tools=tools,
        problems=tuple(problems),
    )
    return manifest, definitions


def _provider(name: str, catalog: Catalog, tools: dict[str, ManifestTool], redactor: Redactor) -> ManifestProvider:
    reason = catalog.unavailable.get(name)
    own = [tool.safety for tool in tools.values() if tool.provider == name]
    return ManifestProvider(
        name=name,
        kind=catalog.kinds[name],
        available=reason is None,
        reason=None if reason is None else masked(reason, redactor),
        tools=len(own),
        safety={safety: own.count(safety) for safety in Safety},
        path=_place(name),
    )


def _tool(
    definition: Definition, binding: Binding, catalog: Catalog, *, policy: Policy, redactor: Redactor
) -> ManifestTool:
    tool, undo = definition.tool, catalog.undo_of(definition)
    return ManifestTool(
        name=definition.name,
        provider=definition.provider,
        description=definition.description,
        parameters=definition.parameters,
        output_schema=definition.output_schema,
        safety=tool.safety,
        undo=tool.undo,
        undo_tool=undo.name if undo is not None and tool.undo is not None else None,
        verify=masked(_verify(definition), redactor) if tool.verify else None,
        verify_is_final=tool.verify_is_final,
        idempotent=definition.declaration.idempotent,
        serial=tool.serial,
        denied=forbids(policy, tool),
        path=path_of(definition),
        mcp_tool_name=definition.mcp_name,
        function=definition.function,
        binding=f"{binding.module}.{binding.function}",
        arguments=tuple(
            ManifestParameter(
                argument=one.argument,
                name=one.name,
                type=one.type,
                required=one.required,
                default=one.default,
                description=one.description,
            )
            for one in binding.parameters
        ),
        others=binding.others is not None,
        definition=tool.definition,
    )


def _verify(definition: Definition) -> str:
    check = definition.declaration.verify
    if check is None:
        return ""
    condition = check.applied_if.strip().removeprefix("{{").removesuffix("}}").strip()
    return f"{describe(check.tool, check.arguments)}, applied if {condition}"


def _place(provider: str) -> str:
    return f"providers/{file_name(provider)}/provider.json"
