"""Check a program before it runs: that it compiles, that its imports exist, that its calls fit the tools."""

import ast
import builtins
import difflib
import sys
from collections.abc import Collection, Iterator, Mapping
from inspect import Parameter, Signature
from typing import NamedTuple

from backstay.shown import message_line
from sandbox.guest.programs.source import ENTRIES, PreparedProgram, prepare
from sandbox.images.files import MISSING_MODULES
from sandbox.programs.frames import names_of
from sandbox.programs.syntax import NameUse, ProgramSyntax

MOST_FAULTS = 10
_CLIENT = frozenset({"OutcomeSettled", "ToolError", "UNSET", "call", "result"})
_GIVEN = _CLIENT - {"UNSET", "call"} | {"asyncio", "exit", "json", "mcp", "quit", "re"}
_SURPRISING = frozenset({"eval", "exec", "globals", "locals", "setattr", "vars"})
# Only the module `site` adds these; the sandbox starts without it.
_OF_SITE = frozenset({"copyright", "credits", "exit", "help", "license", "quit"})
_BUILTIN = frozenset(dir(builtins)) - _OF_SITE
_OF_DATES = frozenset({"datetime64", "busday_count", "busday_offset", "busdaycalendar", "is_busday"})
"""The functions of numpy that read text as a date."""
_LONGEST_NAME = 80
_HARMLESS = (
    *(ast.Pass, ast.Continue, ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.Compare, ast.BoolOp, ast.Constant),
    *(ast.Name, ast.Add, ast.Sub, ast.Mult, ast.expr_context, ast.cmpop, ast.boolop),
)
"""What a loop may hold of which it is certain that it does not leave it."""

Functions = Mapping[str, Mapping[str, Signature]]
"""By provider and function, as a program writes them."""


class ProgramFault(NamedTuple):
    """Hold one thing that would go wrong, and what may have been meant."""

    line: int
    text: str
    wanted: str = ""
    choices: tuple[str, ...] = ()
    listed: bool = False
    """Whether the choices are few and telling enough to be shown."""

    def said(self) -> str:
        """Return the fault in one line."""
        close = difflib.get_close_matches(self.wanted[:_LONGEST_NAME], self.choices, 1)
        more = f"; did you mean {close[0]}?" if close else ""
        if not more and self.listed and self.choices:
            more = f"; there is: {', '.join(self.choices[:8])}{', ...' if len(self.choices) > 8 else ''}"
        return f"line {self.line}: {self.text}{more}"


def check_program(
    source: str, *, functions: Functions, importable: frozenset[str], tools: Collection[str] = ()
) -> list[str]:
    """Return what is wrong with a program, one line each with its line number, at most ten; nothing is executed.

    `tools`: those that it may call by their names.
    """
    try:
        prepared = _prepared(source)
        syntax = ProgramSyntax(prepared.tree)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        return [where + message_line(str(error.msg), 300)]
    faults = {*_imports(syntax, functions, importable), *_names(syntax, functions), *_uses(syntax, functions)}
    faults |= {*_idle(prepared), *_endless(prepared.tree), *_named_calls(syntax, names_of(tools)), *_clocks(syntax)}
    return [fault.said() for fault in sorted(faults)[:MOST_FAULTS]]


def blocked_uses(source: str, blocked: Collection[str]) -> list[str]:
    """Return where a program uses modules and functions that people are warned of, one line each, at most ten.

    `blocked`: dotted names, such as `subprocess`, `os.system` or `eval`. It is not a boundary: a program can reach
    everything in the sandbox by other names. Nothing is executed.
    """
    try:
        syntax = ProgramSyntax(_prepared(source).tree)
    except SyntaxError:
        return []
    found: dict[str, int] = {}
    for line, used in sorted(_reached(syntax)):
        for name in blocked:
            if f"{used}.".startswith(f"{name}.") or (used.endswith(".*") and name.startswith(used[:-1])):
                found.setdefault(name, line)
    return [f"line {line}: uses {_cut(name)}" for name, line in found.items()][:MOST_FAULTS]


def _reached(syntax: ProgramSyntax) -> Iterator[tuple[int, str]]:
    """Yield the dotted names that a program imports and uses, as far as its syntax shows them."""
    for line, module, name, _ in syntax.imported:
        yield line, module if name is None else f"{module}.{name}"
    for used in syntax.used:
        if used.root not in syntax.bound:
            for origin in syntax.origins.get(used.root) or {used.root}:
                yield used.line, ".".join((origin, *used.parts)).removeprefix("builtins.")
    for name, line in syntax.loaded.items():
        if name not in syntax.bound and name not in syntax.origins:
            yield line, name


def _prepared(source: str) -> PreparedProgram:
    """Prepare a program, a second time if need be: in Python 3.11 a garbage collection can make the parser fail."""
    try:
        return prepare(source)
    except SystemError:
        return prepare(source)


def _idle(prepared: PreparedProgram) -> Iterator[ProgramFault]:
    """Yield the fault of a program that defines functions of which nothing would run."""
    body = prepared.tree.body
    defined = [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if defined and not prepared.is_module and all(map(_runs_nothing, body)):
        names = [node.name for node in defined]
        entry = next((name for name in ENTRIES if name in names), None)
        text = f"nothing runs {_cut(names[-1])}: there is no main or solve; name it main, or await it at the end"
        if entry is not None:
            text = f"nothing runs {entry}: it cannot be called without arguments; let it take none"
        yield ProgramFault(defined[-1 if entry is None else names.index(entry)].lineno, text)


def _runs_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom() | ast.Pass():
            return True
        case ast.Expr(value=ast.Constant()) | ast.Assign(value=ast.Constant()) | ast.AnnAssign(value=ast.Constant()):
            return True
        case _:
            return False


def _endless(tree: ast.Module) -> Iterator[ProgramFault]:
    """Yield loops that can never end, whatever happens: nothing in them leaves, waits, calls or could fail."""
    for loop in ast.walk(tree):
        match loop:
            case ast.While(test=ast.Constant(value=value), body=body) if value:
                if all(isinstance(node, _HARMLESS) for statement in body for node in ast.walk(statement)):
                    yield ProgramFault(
                        loop.lineno, "this loop never ends: nothing in it leaves it; add a condition or a break"
                    )
            case _:
                pass


def _imports(syntax: ProgramSyntax, functions: Functions, importable: frozenset[str]) -> Iterator[ProgramFault]:
    for line, module, name, guarded in syntax.imported:
        top = module.partition(".")[0]
        if top == "sandbox_py":
            yield from _own_import(line, module, name, functions)
        elif not top:
            yield ProgramFault(line, "a program is one file, nothing can be imported relative to it")
        elif top not in importable and top != "__future__" and not guarded:
            text = f"cannot import {_cut(module)}: {_reason(top, functions)}"
            known = top in sys.stdlib_module_names or top in functions
            yield ProgramFault(line, text, top, () if known else tuple(sorted(importable)))


def _reason(module: str, functions: Functions) -> str:
    if module in functions:
        return f"it is there without an import; for another name write: from sandbox_py.servers import {module} as ..."
    inside = "it is left out of the sandbox" if module in sys.stdlib_module_names else "it is not in the sandbox"
    return f"{inside} ({MISSING_MODULES[module]})" if module in MISSING_MODULES else inside


def _own_import(line: int, module: str, imported: str | None, functions: Functions) -> Iterator[ProgramFault]:
    path = module.split(".")[1:] + ([] if imported is None else [imported])
    match path:
        case [] | ["servers" | "client" | "*"] | ["servers" | "client", "*"]:
            pass
        case ["client", name] if name in _CLIENT:
            pass
        case ["servers", provider] if provider in functions:
            pass
        case ["servers", provider, name, *more] if provider in functions:
            if name not in functions[provider] and name != "*":
                yield _no_function(line, provider, name, functions)
            elif name == "*" or more or imported is None:
                name = "..." if name == "*" else name
                text = f"name what you import: from sandbox_py.servers.{provider} import {name}"
                yield ProgramFault(line, text, "", tuple(functions[provider]), listed=name == "...")
        case ["servers", provider, *_]:
            yield _no_provider(line, provider, functions)
        case ["client", name]:
            yield ProgramFault(
                line, f"sandbox_py.client has no {_cut(name)}", name, tuple(sorted(_CLIENT)), listed=True
            )
        case _:
            yield ProgramFault(line, f"there is no module sandbox_py.{_cut('.'.join(path))}; import sandbox_py.servers")


def _names(syntax: ProgramSyntax, functions: Functions) -> Iterator[ProgramFault]:
    """Yield names that nothing binds, unless the program may bind names in ways that are not seen here."""
    if "*" in syntax.origins or _SURPRISING & syntax.loaded.keys():
        return
    known = {*syntax.bound, *syntax.origins, *_BUILTIN, *_GIVEN, *functions}
    for name, line in syntax.loaded.items():
        if name not in known and not name.startswith("__"):
            yield ProgramFault(line, f"{_cut(name)} is not defined", name, tuple(sorted(known - _BUILTIN)))


def _uses(syntax: ProgramSyntax, functions: Functions) -> Iterator[ProgramFault]:
    for used in syntax.used:
        name = ".".join((used.root, *used.parts))
        if used.root in syntax.bound:
            if used.call and used.wasted and not used.parts and syntax.coroutines.get(used.root) == 1:
                yield _not_awaited(used, name)
            continue
        origins = syntax.origins.get(used.root) or {f"sandbox_py.servers.{used.root}"}
        if len(origins) > 1:
            continue
        (origin,) = origins
        imported = origin.split(".")
        match [*imported, *used.parts]:
            case ["sandbox_py", "servers", provider, function, *rest] if provider in functions:
                signature = functions[provider].get(function)
                if signature is None and len(imported) < 4 and not function.startswith("__"):
                    yield _no_function(used.line, provider, function, functions)
                elif signature is not None and used.call and not rest:
                    yield from _call(used, used.call, f"{provider}.{function}", signature)
                elif signature is not None and rest and not rest[0].startswith("__"):
                    yield ProgramFault(used.line, f"{provider}.{function} is a function and has no {_cut(rest[0])}")
            case ["sandbox_py", "servers", provider] if used.call and provider in functions:
                text, choices = f"{provider} is a provider and cannot be called itself", tuple(functions[provider])
                yield ProgramFault(used.line, text, "", choices, listed=True)
            case ["sandbox_py", "servers", provider, *_] if len(imported) < 3:
                yield _no_provider(used.line, provider, functions)
            case _ if used.awaited and set(used.parts[:1]) & functions.get(used.root, {}).keys():
                text = f"{used.root} is the module {_cut(origin)} here"
                yield ProgramFault(
                    used.line, f"{text}; write: from sandbox_py.servers import {used.root} as {used.root}_tools"
                )
            case _:
                pass


def _named_calls(syntax: ProgramSyntax, names: Mapping[str, str]) -> Iterator[ProgramFault]:
    """Yield what is wrong with calls of `mcp.call_tool`."""
    for used in syntax.used:
        if used.root != "mcp" or used.root in syntax.bound or used.root in syntax.origins:
            continue
        if used.parts[:1] != ("call_tool",):
            yield ProgramFault(used.line, "mcp has only call_tool; write await mcp.call_tool('mail.search', {...})")
        elif used.call is not None:
            match used.call.args:
                case [ast.Constant(value=str(name)), *_] if name not in names:
                    yield ProgramFault(
                        used.line, f"there is no tool {_cut(name)}", name, tuple(sorted(set(names.values())))
                    )
                case _:
                    pass
            if used.wasted and not used.awaited:
                yield _not_awaited(used, "mcp.call_tool")


def _clocks(syntax: ProgramSyntax) -> Iterator[ProgramFault]:
    """Yield calls with a word for now beside a date, by which numpy would ask the clock that no replay shows again."""
    for used in syntax.used:
        origins = syntax.origins.get(used.root, set())
        if used.call is None or not any(origin.partition(".")[0] == "numpy" for origin in origins):
            continue
        given = [*used.call.args, *(keyword.value for keyword in used.call.keywords)]
        names = {*used.parts[-1:], *(origin.rpartition(".")[2] for origin in origins if not used.parts)}
        if (names & _OF_DATES or any(map(_is_date_type, given))) and any(map(_is_now, given)):
            text = "numpy's own words for now and today show the machine's clock"
            yield ProgramFault(used.line, f"{text}; write numpy.datetime64(datetime.now())")


def _is_date_type(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(kind)):
            return kind.lstrip("<>=|").startswith(("datetime64", "M8"))
        case ast.Call(func=ast.Attribute(attr="dtype") | ast.Name(id="dtype"), args=[kind, *_]):
            return _is_date_type(kind)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name == "datetime64"
        case _:
            return False


def _is_now(node: ast.expr) -> bool:
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return any(map(_is_now, elements))
        case ast.Constant(value=str() | bytes() as word):
            return word.lower() in ("now", "today", b"now", b"today")
        case _:
            return False


def _call(used: NameUse, call: ast.Call, name: str, signature: Signature) -> Iterator[ProgramFault]:
    parameters = signature.parameters
    takes = {key: taken for key, taken in parameters.items() if taken.kind is not Parameter.VAR_KEYWORD}
    given = [keyword.arg for keyword in call.keywords]
    if call.args:
        first = next(iter(takes), "")
        yield ProgramFault(used.line, f"{name} takes keywords only; write {name}({f'{first}=...' if first else ''})")
    if len(takes) == len(parameters):
        for keyword in given:
            if keyword is not None and keyword not in takes:
                text = f"{name} has no parameter {_cut(keyword)}"
                yield ProgramFault(used.line, text, keyword, tuple(takes), listed=True)
    missing = [key for key, taken in takes.items() if taken.default is Parameter.empty and key not in given]
    if missing and not call.args and None not in given:
        yield ProgramFault(used.line, f"{name} needs {', '.join(missing[:8])}")
    if used.wasted and not used.awaited:
        yield _not_awaited(used, name)


def _not_awaited(used: NameUse, name: str) -> ProgramFault:
    return ProgramFault(used.line, f"{_cut(name)}(...) is not awaited; write await {_cut(name)}(...)")


def _no_provider(line: int, provider: str, functions: Functions) -> ProgramFault:
    return ProgramFault(line, f"there is no provider {_cut(provider)}", provider, tuple(functions), listed=True)


def _no_function(line: int, provider: str, function: str, functions: Functions) -> ProgramFault:
    text = f"there is no {provider}.{_cut(function)}"
    return ProgramFault(line, text, function, tuple(functions[provider]), listed=True)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
