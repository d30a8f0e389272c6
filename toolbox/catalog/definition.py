"""One tool of the catalog: what workflows know about it, and what only workers need."""

import asyncio
from dataclasses import asdict, dataclass, field
from typing import Any

from backstay.canonical import digest_of
from backstay.policies.command_lists import CommandLists
from backstay.shown import one_line
from backstay.tools.tool import Safety, Tool
from toolbox.catalog.naming import function_name, is_spelt_out
from toolbox.configuration.template import describe
from toolbox.providers.declaration import NOT_FALSE, Declaration
from toolbox.providers.listing import ListedTool, ToolAnnotations, in_order
from toolbox.schema import compile_schema, fault_of


def safety_of(declared: Safety | None, annotations: ToolAnnotations, *, trusted: bool) -> Safety:
    """Return the safety: the operator's declaration counts; only a trusted server's annotations can lower it.

    Without a declaration and without a trusted annotation a tool is restricted_write.
    """
    if declared is None:
        return _believed(annotations) if trusted else Safety.RESTRICTED_WRITE
    if trusted:
        return declared
    return max(declared, _admitted(annotations), key=lambda safety: safety.level)


def _believed(annotations: ToolAnnotations) -> Safety:
    if annotations.read_only:
        return Safety.READ_ONLY
    return Safety.WRITE_SAFE if annotations.destructive is False else Safety.RESTRICTED_WRITE


def _admitted(annotations: ToolAnnotations) -> Safety:
    """Return the danger that a server admits without being trusted; no annotation admits nothing."""
    if annotations.read_only:
        return Safety.READ_ONLY
    if annotations.destructive:
        return Safety.RESTRICTED_WRITE
    return Safety.READ_ONLY if annotations.read_only is None else Safety.WRITE_SAFE


_NEWER = ("audience", "succeeded_if", "failed_if", "secret_arguments", "simulate")
_DESCRIPTION = 4000
_OFFERED = 1024


@dataclass(frozen=True, kw_only=True)
class Definition:
    """Hold one tool; equal hashes mean that server and operator describe it in the same way."""

    tool: Tool
    function: str
    """The name under which a model calls it."""
    mcp_name: str
    """The name its server knows it by."""
    behind: str = ""
    """For a tool that calls one other tool: the name of that one."""
    description: str
    parameters: dict[str, Any] = field(repr=False)
    """The JSON Schema of the arguments, without the one that the engine fills in itself."""
    declaration: Declaration = field(repr=False)
    trusted: bool = False
    """Whether the operator trusts what its server says of it."""
    hidden: bool = False
    """Whether only the engine calls it."""
    of_engine: bool = False
    """Whether the engine adds it to what its server lists."""
    quiet: bool = False
    """Whether searches leave it out: its purpose is in the answers that name it."""
    output_schema: dict[str, Any] | None = field(default=None, repr=False)
    """The JSON Schema of what it answers, when its server says so."""
    said: dict[str, Any] = field(default_factory=dict, repr=False)
    """All that its server and the operator say about it: what the hash of the definition is made of."""
    digest: str = ""
    """The whole hash of `said`; the tool carries its beginning, which is short enough to find another text for."""
    earlier_digest: str = ""
    """The hash that older versions gave it, for which the order of every list counted; empty where that is the same."""
    commands: CommandLists | None = field(default=None, repr=False)
    """For a tool that runs its argument `command`: which it may run."""
    checking: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False, compare=False)
    """Shared by the tools of a provider, so that slow schemas keep only its own calls waiting."""

    @property
    def is_found(self) -> bool:
        """Return whether searches and lists of tools show it."""
        return not (self.hidden or self.quiet)

    @property
    def offered(self) -> str:
        """Return what a model that may call it is told of what it does."""
        return self.description[:_OFFERED]

    @property
    def name(self) -> str:
        """Return `provider.tool`."""
        return self.tool.name

    @property
    def provider(self) -> str:
        """Return the provider's name."""
        return self.tool.provider

    def refusal(self, arguments: dict[str, Any]) -> str | None:
        """Return why the operator lets nobody make this call, whatever people decide, or None."""
        return None if self.commands is None else self.commands.refusal(str(arguments.get("command", "")))

    async def check(self, arguments: Any) -> str | None:
        """Return what `validate` returns, without holding up the calls of other providers."""
        async with self.checking:
            return await asyncio.to_thread(self.validate, arguments)

    def validate(self, arguments: Any) -> str | None:
        """Return what is wrong with the arguments in one line that quotes no value, or None; it may take seconds."""
        if not isinstance(arguments, dict):
            return "arguments: must be an object"
        # No cached_property: before Python 3.12 it lets all instances wait for each other.
        validator = self.__dict__.get("_validator") or self.__dict__.setdefault(
            "_validator", compile_schema(self.parameters, of_a_server=True)
        )
        # A schema that cannot be used is not a fault of the arguments: the server decides about them.
        return None if isinstance(validator, str) else fault_of(validator, arguments, left_to_the_server=True)


def define(
    provider: str,
    listed: ListedTool,
    declaration: Declaration,
    *,
    trusted: bool,
    serial: bool,
    parallel: bool = False,
    timeout: float | None = None,
) -> Definition:
    """Return the definition of a listed tool; its hash covers all that server and operator say about it."""
    digest = digest_of(said := _said(listed, declaration))
    earlier = digest_of(said | _as_listed(listed))
    earlier = "" if earlier == digest else earlier
    tool = Tool(
        serial=serial,
        parallel=parallel,
        timed=listed.timed,
        deadline_s=declaration.timeout or timeout,
        definition=digest[:16],
        earlier_definition=earlier[:16],
        **_facts(provider, listed, declaration, trusted=trusted),
    )
    return Definition(
        tool=tool,
        function=function_name(provider, listed.name),
        mcp_name=listed.name,
        description=_described(provider, listed),
        parameters=_without(listed.input_schema, declaration.idempotency_argument),
        declaration=declaration,
        trusted=trusted,
        hidden=listed.hidden,
        of_engine=listed.of_engine,
        quiet=listed.quiet,
        output_schema=listed.output_schema,
        said=said,
        digest=digest,
        earlier_digest=earlier,
        commands=listed.commands,
    )


def _described(provider: str, listed: ListedTool) -> str:
    """Return what a tool does, and its own name where the one that models call does not tell it."""
    if is_spelt_out(provider, listed.name):
        return listed.description[:_DESCRIPTION]
    return f"{one_line(listed.name, 100)}: {listed.description}"[:_DESCRIPTION].strip(": ")


def _facts(provider: str, listed: ListedTool, declaration: Declaration, *, trusted: bool) -> dict[str, Any]:
    """Return what workflows know of a tool by itself, whatever its provider is like."""
    undo, by_id, verify = declaration.undo, declaration.undo_by_effect_id, declaration.verify
    return {
        "name": f"{provider}.{listed.name}",
        "safety": safety_of(declaration.safety, listed.annotations, trusted=trusted),
        "undo": describe(undo.tool, undo.arguments) if undo else None,
        "undo_by_id": describe(by_id.tool, by_id.arguments) if by_id else "",
        "verify": verify is not None,
        "verify_is_final": verify is not None and verify.verify_is_final,
        "idempotent": declaration.idempotent,
        "previewed": listed.previewed or declaration.preview is not None,
        "side_effects": tuple(declaration.side_effects),
        "content": declaration.content,
        "egress": listed.annotations.open_world is True if declaration.egress is None else declaration.egress,
        "audience": declaration.audience,
        "secret_arguments": tuple(declaration.secret_arguments),
        "calls": listed.calls,
    }


def _said(listed: ListedTool, declaration: Declaration) -> dict[str, Any]:
    own = listed.declared.verify if listed.declared else None
    if own is not None and own.applied_if == NOT_FALSE and declaration.verify == own:
        # It stays under the text that the engine once wrote for it, so that no tool counts as changed by an upgrade.
        known = own.model_copy(update={"applied_if": "{{ not not result }}"})
        declaration = declaration.model_copy(update={"verify": known})
    return {
        "name": listed.name,
        "description": listed.description,
        "input": in_order(listed.input_schema),
        "output": in_order(listed.output_schema),
        "annotations": asdict(listed.annotations),
        "declaration": declaration.model_dump(
            mode="json", exclude={"timeout", "content", "egress", *_unset(declaration)}
        ),
        **({"origin": listed.origin} if listed.origin else {}),
    }


def _as_listed(listed: ListedTool) -> dict[str, Any]:
    """Return the parts of what a server says of a tool that were once compared with every list in its order."""
    origin = {"origin": listed.earlier_origin} if listed.earlier_origin else {}
    return {"input": listed.input_schema, "output": listed.output_schema, **origin}


def _unset(declaration: Declaration) -> set[str]:
    """Return the newer fields that are not set, so that they do not change the hash of a tool that is known."""
    return {name for name in _NEWER if not getattr(declaration, name)}


def _without(schema: dict[str, Any], argument: str | None) -> dict[str, Any]:
    properties = schema.get("properties")
    if argument is None or not isinstance(properties, dict) or argument not in properties:
        return schema
    kept = {name: value for name, value in properties.items() if name != argument}
    required = schema.get("required")
    left = [name for name in required if name != argument] if isinstance(required, list) else []
    rest = {key: value for key, value in schema.items() if key not in {"properties", "required"}}
    return {**rest, "properties": kept, **({"required": left} if left else {})}
