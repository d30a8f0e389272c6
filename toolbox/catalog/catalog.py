"""The tools one user may see at one moment."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from backstay.canonical import digest_of
from backstay.shown import one_line
from backstay.tools.tool import Hit, Safety
from toolbox.catalog.definition import Definition
from toolbox.catalog.index import ToolIndex
from toolbox.catalog.naming import file_name, first_sentence
from toolbox.providers.declaration import CallTemplate

_LIMIT = 100
_SHORT = 200
_NAMED = 10


class PinnedText(NamedTuple):
    """Hold the description of a tool, or of a server in its own words, and its hash."""

    digest: str
    said: dict[str, Any]
    earlier: str = ""
    """The hash that older versions gave it; empty where that is the same."""

    @property
    def digests(self) -> frozenset[str]:
        """Return the hashes under which it may have been allowed."""
        return frozenset({self.digest, self.earlier or self.digest})


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Hold definitions and answer searches; equal versions mean equal definitions."""

    version: str
    definitions: dict[str, Definition] = field(repr=False)
    """By `provider.tool`."""
    by_function: dict[str, Definition] = field(repr=False)
    """By the name under which a model calls them."""
    problems: list[str]
    """What an operator should correct, one line each."""
    unavailable: dict[str, str]
    """Why a provider cannot be used now, by provider; tools that were listed before stay listed."""
    index: ToolIndex = field(repr=False)
    starting: frozenset[str] = frozenset()
    """The providers among the unavailable ones that may still become available."""
    kinds: dict[str, str] = field(default_factory=dict)
    """The kind of each provider that the user is granted, even without tools."""
    changed: frozenset[str] = frozenset()
    """The tools whose definition is none of those last allowed, and the providers of which what they say is none."""
    instructions: dict[str, str] = field(default_factory=dict)
    """What servers say of themselves, by provider."""
    withheld: dict[str, str] = field(default_factory=dict)
    """Why the user does not see a provider at all, by provider."""

    @property
    def pinned(self) -> dict[str, PinnedText]:
        """Return what counts until people accept another text: each tool, and, by provider, its server's words."""
        tools = {
            name: PinnedText(found.digest, found.said, found.earlier_digest) for name, found in self.definitions.items()
        }
        spoken = {name: {"description": text} for name, text in self.instructions.items()}
        return tools | {name: PinnedText(digest_of(said), said) for name, said in spoken.items()}

    def search(
        self,
        query: str,
        detail_level: Literal["summary", "full"] = "summary",
        limit: int = 10,
        providers: Collection[str] = (),
    ) -> list[Hit]:
        """Return matching tools, best first: an exact name leads, tools that cannot be used now come last.

        `providers`: only their tools; empty: those of all.
        """
        limit = max(1, min(limit, _LIMIT))
        wanted = query.strip()
        exact = [d.name for d in self._named(wanted)]
        # Unavailable tools come last, so all matches must be known before the first is returned.
        enough = len(self.definitions) if self.unavailable or providers else limit + len(exact)
        found = self.index.find(wanted, enough) if wanted else self._all_found
        rest = [self.definitions[name] for name in dict.fromkeys(found) if name not in exact]
        rest.sort(key=lambda definition: definition.provider in self.unavailable)
        ordered = [*(self.definitions[name] for name in exact), *rest]
        ordered = [found for found in ordered if not providers or found.provider in providers]
        return [self._hit(definition, detail_level) for definition in ordered[:limit]]

    def undo_of(self, definition: Definition) -> Definition | None:
        """Return the tool that undoes an effect of this one, if it is declared and exists."""
        return self._target(definition, definition.declaration.undo)

    def undo_by_effect_id_of(self, definition: Definition) -> Definition | None:
        """Return the tool that undoes an effect of which only the id is known."""
        return self._target(definition, definition.declaration.undo_by_effect_id)

    def preview_of(self, definition: Definition) -> Definition | None:
        """Return the tool that shows what a call of this one would change."""
        return self._target(definition, definition.declaration.preview)

    def verify_of(self, definition: Definition) -> Definition | None:
        """Return the tool that tells whether an effect of this one took place."""
        return self._target(definition, definition.declaration.verify)

    def _target(self, definition: Definition, template: CallTemplate | None) -> Definition | None:
        return None if template is None else _target(self.definitions, definition, template.tool)

    def _named(self, wanted: str) -> list[Definition]:
        direct = self.definitions.get(wanted) or self.by_function.get(wanted)
        if direct is not None:
            return [] if direct.hidden else [direct]
        same = self._by_folded_name.get(wanted.casefold(), [])
        return sorted(same, key=lambda d: (d.provider in self.unavailable, d.name))[:_LIMIT]

    @cached_property
    def _all_found(self) -> list[str]:
        """Return the names of all tools that a search may find."""
        return sorted(name for name, definition in self.definitions.items() if definition.is_found)

    @cached_property
    def _by_folded_name(self) -> dict[str, list[Definition]]:
        folded: dict[str, list[Definition]] = {}
        for definition in _open(self.definitions.values()).values():
            for name in {definition.mcp_name.casefold(), definition.name.casefold()}:
                folded.setdefault(name, []).append(definition)
        return folded

    def _hit(self, definition: Definition, detail_level: str) -> Hit:
        provider = definition.provider
        return Hit(
            provider=provider,
            tool=definition.name,
            short_description=first_sentence(definition.description, _SHORT),
            parameters=definition.parameters if detail_level == "full" else summary_of(definition.parameters),
            available=provider not in self.unavailable,
            reason=self.unavailable.get(provider),
            path=path_of(definition),
            mcp_tool_name=definition.behind or definition.mcp_name,
        )


def build(definitions: Iterable[Definition], problems: list[str], unavailable: dict[str, str]) -> Catalog:
    """Return the catalog of these definitions, without those that no model could tell apart; run it off the loop."""
    found = list(problems)
    by_name = _without_clashes({definition.name: definition for definition in definitions}, found)
    checked = {name: _checked(definition, by_name, found) for name, definition in by_name.items()}
    hashes = sorted((name, definition.digest) for name, definition in checked.items())
    shown = _open(checked.values())
    return Catalog(
        version=digest_of(hashes)[:16],
        definitions=checked,
        by_function={definition.function: definition for definition in shown.values()},
        problems=found,
        unavailable=unavailable,
        index=ToolIndex(definition for definition in checked.values() if definition.is_found),
    )


def _without_clashes(definitions: dict[str, Definition], problems: list[str]) -> dict[str, Definition]:
    """Leave out all tools that would be called by one name; none of them is preferred, or a server could choose."""
    by_function: dict[str, list[str]] = {}
    for definition in _open(definitions.values()).values():
        by_function.setdefault(definition.function, []).append(definition.name)
    clashes = {function: sorted(names) for function, names in by_function.items() if len(names) > 1}
    problems += [
        f"{_listed(names)} are left out because all of them would be called {function}; "
        "rename all but one of them, or one of the providers"
        for function, names in clashes.items()
    ]
    refused = {name for names in clashes.values() for name in names}
    return {name: definition for name, definition in definitions.items() if name not in refused}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(one_line(name, 200) for name in names[:_NAMED]) + more


def _open(definitions: Iterable[Definition]) -> dict[str, Definition]:
    """Return the definitions that are not hidden, by name."""
    return {definition.name: definition for definition in definitions if not definition.hidden}


def path_of(definition: Definition) -> str:
    """Return where the tool's own file lies beneath the folder of the manifest."""
    return f"providers/{file_name(definition.provider)}/tools/{file_name(definition.mcp_name)}.json"


def summary_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the type of each parameter by its name; a trailing `?` marks what may be left out."""
    properties = schema.get("properties")
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    if not isinstance(properties, dict):
        return {}
    return {str(name): _type(rule) + ("" if name in needed else "?") for name, rule in list(properties.items())[:50]}


def _type(rule: Any) -> str:
    if not isinstance(rule, dict):
        return "any"
    if isinstance(rule.get("enum"), list):
        return "|".join(str(value)[:40] for value in rule["enum"][:8])
    kind = rule.get("type")
    if kind == "array":
        return f"array of {_type(rule.get('items'))}" if "items" in rule else "array"
    if isinstance(kind, list):
        return "|".join(str(name) for name in kind[:8])
    choices = rule.get("anyOf") or rule.get("oneOf")
    if kind is None and isinstance(choices, list):
        return "|".join(
            dict.fromkeys(_type({**c, "anyOf": None}) if isinstance(c, dict) else "any" for c in choices[:8])
        )
    return str(kind or ("object" if "$ref" in rule else "any"))[:40]


_WITHOUT: dict[str, dict[str, Any]] = {
    "undo": {"undo": None},
    "undo_by_effect_id": {"undo_by_id": ""},
    "verify": {"verify": False, "verify_is_final": False},
    "preview": {"previewed": False},
}
"""What a tool is like when a call that it declares cannot be made."""


def _checked(definition: Definition, known: dict[str, Definition], problems: list[str]) -> Definition:
    """Return the definition without an undo or check that does not exist; each is added to the problems."""
    declared, update = definition.declaration, {}
    for field_name, template in (
        ("undo", declared.undo),
        ("undo_by_effect_id", declared.undo_by_effect_id),
        ("verify", declared.verify),
        ("preview", declared.preview),
    ):
        if template is None:
            continue
        target = _target(known, definition, template.tool)
        if target is None:
            problems.append(f"{definition.name}: {field_name}.tool {template.tool!r} does not exist; correct its name")
        elif field_name == "verify" and target.declaration.safety not in {None, Safety.READ_ONLY}:
            problems.append(
                f"{definition.name}: verify.tool {template.tool!r} is declared to write; name a reading tool"
            )
        elif field_name == "preview" and (
            target.tool.safety is not Safety.READ_ONLY or target.provider != definition.provider
        ):
            why = "must be read-only and of the same provider, because it is called before people decide"
            problems.append(
                f"{definition.name}: preview.tool {template.tool!r} {why}; declare its safety, or remove it"
            )
        else:
            continue
        update |= _WITHOUT.get(field_name, {})
    return replace(definition, tool=definition.tool.model_copy(update=update)) if update else definition


def _target(known: dict[str, Definition], definition: Definition, tool: str) -> Definition | None:
    return known.get(f"{definition.provider}.{tool}") or known.get(tool)
