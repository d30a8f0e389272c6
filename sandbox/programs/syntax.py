"""The imports, bindings and uses of a program, read from its syntax tree in one pass and without running anything."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

_CATCHES_MISSING = {"ImportError", "ModuleNotFoundError", "NameError"}
_CATCHES_ALL = {"Exception", "BaseException", "*"}


class ImportedName(NamedTuple):
    """Hold one imported name."""

    line: int
    module: str
    """The module, with leading dots when the import is relative."""
    name: str | None
    """What is taken from the module; None for the module itself."""
    guarded: bool
    """Whether the program expects that it may not exist."""


class NameUse(NamedTuple):
    """Hold one use of a dotted name such as `mail.search`."""

    line: int
    root: str
    parts: tuple[str, ...]
    call: ast.Call | None
    """The call, when the name is called."""
    awaited: bool
    wasted: bool
    """Whether the call's coroutine is dropped or taken for its result."""


class ProgramSyntax:
    """Hold what a program imports, binds and uses, anywhere in it."""

    def __init__(self, tree: ast.Module) -> None:
        """Read the whole tree without recursion, so that it may be nested at any depth."""
        self.imported: list[ImportedName] = []
        self.origins: defaultdict[str, set[str]] = defaultdict(set)
        """By name: the dotted paths under which it is imported."""
        self.bound: set[str] = set()
        """Names that are bound by anything but an import."""
        self.coroutines: dict[str, int] = {}
        """How often each name is bound, once only where that is an async function of the program's own."""
        self.loaded: dict[str, int] = {}
        """Names that are read, and the line of the first time."""
        self.used: list[NameUse] = []
        self._awaited: set[int] = set()
        self._wasted: set[int] = set()
        self._seen: set[int] = set()
        waiting: list[tuple[ast.AST, bool]] = [(node, False) for node in reversed(tree.body)]
        while waiting:
            node, guarded = waiting.pop()
            self._take(node, guarded=guarded)
            waiting += reversed(list(_inside(node, guarded=guarded)))

    def _take(self, node: ast.AST, *, guarded: bool) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._take_import(node, guarded=guarded)
            case ast.Name(id=name, ctx=ast.Load()) if not guarded:
                self.loaded.setdefault(name, node.lineno)
            case ast.Await(value=value):
                self._awaited.add(id(value))
            case ast.Expr(value=value) | ast.Subscript(value=value) | ast.For(iter=value):
                self._wasted.add(id(value))
            case ast.comprehension(iter=value, is_async=0):
                self._wasted.add(id(value))
            case ast.Call(func=ast.Name() | ast.Attribute() as named):
                self._take_name(named, node)
            case ast.Attribute() if id(node) not in self._seen:
                self._take_name(node, None)
            case _:
                pass
        for name in _names_bound(node):
            self.bound.add(name)
            self.coroutines[name] = self.coroutines.get(name, 0) + (1 if _is_coroutine(node) else 2)

    def _take_import(self, node: ast.Import | ast.ImportFrom, *, guarded: bool) -> None:
        module = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else None
        for alias in node.names:
            if module is None:
                self.imported.append(ImportedName(node.lineno, alias.name, None, guarded))
                first = alias.name.partition(".")[0]
                self.origins[alias.asname or first].add(alias.name if alias.asname else first)
            else:
                self.imported.append(ImportedName(node.lineno, module, alias.name, guarded))
                self.origins[alias.asname or alias.name].add(f"{module}.{alias.name}")

    def _take_name(self, named: ast.expr, call: ast.Call | None) -> None:
        parts: list[str] = []
        while isinstance(named, ast.Attribute):
            self._seen.add(id(named))
            parts.append(named.attr)
            named = named.value
        self._wasted.add(id(named))
        if isinstance(named, ast.Name) and (call or parts):
            awaited, wasted = id(call) in self._awaited, id(call) in self._wasted
            line = call.lineno if call else named.lineno
            self.used.append(NameUse(line, named.id, tuple(reversed(parts)), call, awaited, wasted))


def _inside(node: ast.AST, *, guarded: bool) -> Iterator[tuple[ast.AST, bool]]:
    caught = isinstance(node, ast.Try) and _expects_missing(node)
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            inner = guarded or (caught and name == "body")
            yield from ((child, inner) for child in value if isinstance(child, ast.AST))
        elif isinstance(value, ast.AST):
            yield value, guarded


def _expects_missing(node: ast.Try) -> bool:
    """Return whether the program goes on by itself when a name or module does not exist."""
    kinds = [handler.type or ast.Name(id="*") for handler in node.handlers]
    named = [name for kind in kinds for name in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]
    caught = {name.id for name in named if isinstance(name, ast.Name)}
    only_imports = all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in node.body)
    return bool(caught & _CATCHES_MISSING or (only_imports and caught & _CATCHES_ALL))


def _names_bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case _ if type(node).__name__ in {"TypeVar", "TypeVarTuple", "ParamSpec"}:
            yield str(getattr(node, "name", ""))
        case _:
            pass


def _is_coroutine(node: ast.AST) -> bool:
    return isinstance(node, ast.AsyncFunctionDef) and not node.decorator_list
