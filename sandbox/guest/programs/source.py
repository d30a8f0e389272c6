"""Turn a program's source into code by the one rule that the check on the host and the runner in the jail share.

A module that defines `main` or `solve` at top level, so that it can be called without arguments, is run by calling that
function. Any other source is the body of `async def main()`, with the scoping of a module: the names that it binds are
global, so nested functions may say `global` and classes can be pickled; only names that a nested function calls
`nonlocal` stay local to the body.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple, TypeVar

FILENAME = "<program>"
"""The file name in tracebacks; line numbers are those of the source."""
LIMIT = 64 * 1024
"""How many characters a program may have."""
# The parser keeps every beginning of a dotted name, so a long one takes gigabytes.
_ENDLESS = re.compile(r"(?:\.[ \t\f\r\n\\]*+\w++[ \t\f\r\n\\]*+){100}")
ENTRIES = ("main", "solve")
Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef
_SUSPENDING = (ast.Return, ast.Await, ast.AsyncFor, ast.AsyncWith)


class PreparedProgram(NamedTuple):
    """Hold a program ready to run: execute `code` in a namespace, then call `entry` from it."""

    tree: ast.Module
    """What the source says, before it was made a body."""
    code: CodeType
    entry: str
    """The name to call without arguments; its result is awaited when it can be."""
    own_entry: CodeType | None
    """The code of the function that is the source's own entry; None where the source is a body without one."""
    is_module: bool
    """Whether the source runs as a module, which may start its entry itself."""


def prepare(source: str) -> PreparedProgram:
    """Return the program ready to run.

    Raises SyntaxError, with a line where one is known, for whatever the interpreter does not take.
    """
    if len(source) > LIMIT:
        raise _fault(f"the program has {len(source)} characters, at most {LIMIT} are allowed; split it")
    if _ENDLESS.search(source):
        raise _fault("a name has more than 100 dots; shorten it")
    # A filter for this file name only: others in this process keep theirs, whatever thread they run in.
    warnings.filterwarnings("ignore", module=re.escape(FILENAME))
    try:
        tree = ast.parse(source.removeprefix("\ufeff"), FILENAME)
        function = _entry(tree)
        is_module = function is not None and _is_module(tree, function)
        module = tree if is_module else _as_body(tree, source)
        code = compile(module, FILENAME, "exec", dont_inherit=True)
        entry = function.name if function is not None and is_module else ENTRIES[0]
        outside = code if is_module else _code_of(code, entry)
        own_entry = None if function is None else _code_of(outside, function.name)
        return PreparedProgram(tree, code, entry, own_entry, is_module)
    except (RecursionError, MemoryError):
        raise _fault("the program is nested too deeply to compile; use fewer levels and shorter expressions") from None
    except UnicodeError:
        raise _fault("the program has characters that are not text (lone surrogates); remove them") from None
    except ValueError as error:
        raise _fault(str(error)) from None


def own(nodes: list[ast.stmt], *, expressions: bool = True) -> Iterator[ast.AST]:
    """Yield every node that runs in the scope of these statements, without those of functions and classes inside.

    Without expressions, of those only what is assigned to; that is several times as fast.
    """
    waiting: list[ast.AST] = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inside = [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)]
            case ast.ClassDef():
                inside = [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
            case ast.Lambda():
                inside = [*node.args.defaults, *(default for default in node.args.kw_defaults if default)]
            case ast.comprehension():
                inside = [node.iter, *node.ifs]
            case _:
                inside = ast.iter_child_nodes(node)
        waiting += (
            inside if expressions else (node for node in inside if not isinstance(node, ast.expr) or _is_target(node))
        )


def _is_target(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)


def _entry(tree: ast.Module) -> Function | None:
    """Return the function that is the program's entry: one that needs no arguments; others are helpers like any."""
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    function = next((defined[name] for name in ENTRIES if name in defined and not _needs(defined[name])), None)
    if function is not None and any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own(function.body)):
        if not _is_named(tree, function):
            raise _fault(f"{function.name} must return its result, not yield it", function)
        return None
    return function


def _code_of(outside: CodeType | None, name: str) -> CodeType | None:
    """Return the code of the last function of this name that is defined directly in some code."""
    inside = () if outside is None else outside.co_consts
    return next((found for found in reversed(inside) if isinstance(found, CodeType) and found.co_name == name), None)


def _needs(function: Function) -> bool:
    """Return whether the function cannot be called without arguments."""
    given = [*function.args.posonlyargs, *function.args.args]
    return len(function.args.defaults) < len(given) or None in function.args.kw_defaults


def _is_named(tree: ast.Module, function: Function) -> bool:
    """Return whether the program names the function anywhere else, and so uses it itself."""
    others = (inner for node in tree.body if node is not function for inner in ast.walk(node))
    return any(isinstance(node, ast.Name) and node.id == function.name for node in others)


def _is_module(tree: ast.Module, entry: Function) -> bool:
    """Return whether the source runs as a module; code that only starts the entry is not left to run twice."""
    start = tree.body.pop() if _starts(tree.body[-1], entry.name) else None
    inside = list(own(tree.body))
    if not any(isinstance(node, _SUSPENDING) or getattr(node, "is_async", 0) for node in inside):
        return True
    if start is None and not any(isinstance(node, ast.Return) for node in inside) and not _is_named(tree, entry):
        start = entry
    if start is not None:
        tree.body.append(_return_of(entry, start))
    return False


def _starts(statement: ast.stmt, name: str) -> bool:
    """Return whether the statement does nothing but start the function."""
    match statement:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=[inner], orelse=[]):
            return _starts(inner, name)
        case ast.Expr(value=ast.Await(value=call)):
            pass
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="run"), args=[call])):
            pass
        case (
            ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="sys"), attr="exit"), args=[code]))
            | ast.Raise(exc=ast.Call(func=ast.Name(id="SystemExit"), args=[code]))
        ):
            return _starts(ast.Expr(value=code), name)
        case ast.Expr(value=call):
            pass
        case _:
            return False
    match call:
        case ast.Call(func=ast.Name(id=called), args=[], keywords=[]):
            return called == name
        case _:
            return False


def _return_of(function: Function, start: ast.stmt) -> ast.Return:
    call = _at(start, ast.Call(func=_at(start, ast.Name(id=function.name, ctx=ast.Load())), args=[], keywords=[]))
    waits = isinstance(function, ast.AsyncFunctionDef)
    return _at(start, ast.Return(value=_at(start, ast.Await(value=call)) if waits else call))


def _as_body(tree: ast.Module, source: str) -> ast.Module:
    """Return a module whose `main` runs the statements; imports that only a module may have are above it."""
    leading = 0
    while leading < len(tree.body) and _may_lead(tree.body[leading]):
        leading += 1
    above = [node for node in tree.body[:leading] if isinstance(node, ast.ImportFrom)]
    above += [node for node in tree.body if _is_star(node)]
    lifted = {id(node) for node in above}
    inside = [node for node in tree.body if id(node) not in lifted]
    every = ast.walk(tree) if "nonlocal" in source else ()
    local = {name for node in every if isinstance(node, ast.Nonlocal) for name in node.names}
    names = sorted(_bound(inside, expressions=":=" in source or "yield" in source) - local)
    inside.insert(0, _at(None, ast.Global(names=names) if names else ast.Pass()))
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    main = ast.AsyncFunctionDef(name=ENTRIES[0], args=nothing, body=inside, decorator_list=[])
    return ast.Module(body=[*above, _at(None, main)], type_ignores=[])


def _may_lead(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.ImportFrom(module="__future__"):
            return True
        case _:
            return False


def _is_star(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.names[0].name == "*"


def _bound(statements: list[ast.stmt], *, expressions: bool) -> set[str]:
    """Return the names that the statements bind, and rewrite what may not be said of a global name."""
    names = _freed(statements)
    for node in own(statements, expressions=expressions):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
                continue
            case ast.alias(name=name, asname=other):
                names.add(other or name.partition(".")[0])
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                names.add(name)
            case ast.Yield() | ast.YieldFrom():
                raise _fault("'yield' outside function", node)
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
            case _:
                pass
        for block in ("body", "orelse", "finalbody"):
            if isinstance(inner := getattr(node, block, None), list):
                names |= _freed(inner)
    return names


def _freed(statements: list[ast.stmt]) -> set[str]:
    """Take annotations of names and `global` out of one block, for neither may be said of a name already global."""
    names: set[str] = set()
    for position, node in enumerate(statements):
        match node:
            case ast.Global():
                names |= set(node.names)
                statements[position] = _at(node, ast.Pass())
            case ast.AnnAssign(target=ast.Name(id=name), value=None):
                names.add(name)
                statements[position] = _at(node, ast.Pass())
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                statements[position] = _at(node, ast.Assign(targets=[target], value=value))
            case _:
                pass
    return names


def _at(where: ast.AST | None, node: Node) -> Node:
    return ast.copy_location(node, where or ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0))


def _fault(text: str, node: ast.AST | None = None) -> SyntaxError:
    return SyntaxError(text, (FILENAME, getattr(node, "lineno", None), None, None))
