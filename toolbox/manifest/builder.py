"""Make the manifest of a user's toolbox, without secrets, and write it for people and other programs."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backstay.policies.policy import Policy, forbids
from backstay.redaction.redactor import Redactor, mask
from backstay.tools.tool import Safety
from toolbox.bindings.binding import FunctionBinding
from toolbox.bindings.package import bound, render_package
from toolbox.catalog.catalog import Catalog, path_of
from toolbox.catalog.definition import Definition
from toolbox.catalog.naming import file_name
from toolbox.configuration.template import describe
from toolbox.manifest.files import folder_of, keep
from toolbox.manifest.manifest import Manifest, ManifestProvider, ManifestTool

if TYPE_CHECKING:
    from toolbox.toolbox import Toolbox

_SECRETS_SHOWN = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshedManifest:
    """Hold a manifest and where it lies now."""

    manifest: Manifest
    folder: Path
    """Holds `manifest.json`, `providers.json`, `providers/` and `sandbox_py/`; always whole."""
    changed: bool
    """Whether anything had to be written."""


class ToolboxBuilder:
    """Make manifests of a toolbox; nothing that it knows as a secret is ever in one."""

    def __init__(
        self, toolbox: "Toolbox", home: Path, *, policy: Policy | None = None, secrets: frozenset[str] = frozenset()
    ) -> None:
        """Write beneath `home`; `policy` says which tools are denied, `secrets` what else must not be shown."""
        self._toolbox = toolbox
        self._home = home
        self._policy = policy or Policy()
        self._redactor = Redactor(toolbox.secrets | secrets)

    async def manifest(self, user_id: str = "singleton", *, fresh: bool = False) -> Manifest:
        """Return the manifest of a user without writing anything."""
        catalog = await self._toolbox.catalog(user_id, fresh=fresh)
        return (await asyncio.to_thread(self._make, user_id, catalog))[0]

    async def refresh_manifest(self, user_id: str = "singleton") -> RefreshedManifest:
        """Ask every server for its tools anew and bring the user's folder up to date; unchanged files stay.

        Raises SettingsInvalid when nothing can be written.
        """
        catalog = await self._toolbox.catalog(user_id, fresh=True)
        return await asyncio.to_thread(self._refresh, user_id, catalog)

    def _make(self, user_id: str, catalog: Catalog) -> tuple[Manifest, list[Definition]]:
        return make_manifest(user_id, catalog, policy=self._policy, redactor=self._redactor)

    def _refresh(self, user_id: str, catalog: Catalog) -> RefreshedManifest:
        manifest, definitions = self._make(user_id, catalog)
        folder = folder_of(self._home, user_id)
        changed = keep(manifest, render_package(definitions), folder)
        return RefreshedManifest(manifest=manifest, folder=folder, changed=changed)


def make_manifest(
    user_id: str, catalog: Catalog, *, policy: Policy, redactor: Redactor
) -> tuple[Manifest, list[Definition]]:
    """Return the manifest of a user's catalog and the definitions it shows; run it off the event loop."""
    definitions, problems = redacted(catalog, redactor)
    bindings = {binding.tool: binding for binding in bound(definitions, inline=True)}
    tools = {
        definition.name: _tool(definition, bindings[definition.name], catalog, policy=policy, redactor=redactor)
        for definition in definitions
    }
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
    definition: Definition, binding: FunctionBinding, catalog: Catalog, *, policy: Policy, redactor: Redactor
) -> ManifestTool:
    tool = definition.tool
    undo = catalog.undo_of(definition) or catalog.undo_by_effect_id_of(definition)
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
        arguments=binding.parameters,
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
        # Each one costs a look at all that follows; a string that holds that many is not a description.
        text = text[end:] if len(shown) < 2 * _SECRETS_SHOWN else ""
    return "".join([*shown, text]) if shown else text


def redacted(catalog: Catalog, redactor: Redactor) -> tuple[list[Definition], list[str]]:
    """Return the catalog's tools by name without any secret, and the problems, with those whose very name holds one.

    Tools that only the engine calls, to check or to undo, are none of them, nor are those that only answers name.
    """
    shown: list[Definition] = []
    problems = [masked(problem, redactor) for problem in catalog.problems]
    offered = (found for found in catalog.definitions.values() if found.is_found)
    for definition in sorted(offered, key=lambda definition: definition.name):
        secret = redactor.secret_in(definition.name)
        if secret is not None and secret[2] == "known":
            problems.append(f"{definition.provider}: a tool is left out because its name holds a secret")
            continue
        undo = definition.tool.undo_declared
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
