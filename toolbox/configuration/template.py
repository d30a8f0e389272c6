"""Render the operator's templates over what tools answered; values keep their own type."""

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

from jinja2 import StrictUndefined, TemplateError, Undefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment

from backstay.canonical import canonical, texts_of, with_texts
from backstay.errors import ArgumentsInvalid

LIMIT = 64 * 1024
"""How many bytes one rendering may have."""


class _Environment(SandboxedEnvironment):
    """Look up keys before methods, so that `result.items` is the tool's field, and refuse exploding operators."""

    intercepted_binops = frozenset({"*", "**"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping) and attribute in obj and not attribute.startswith("_"):
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or not all(isinstance(side, int | float) for side in (left, right)):
            raise SecurityError(f"the operator {operator} is refused here")
        return super().call_binop(context, operator, left, right)


class _PartsChecked(CodeGenerator):
    """Check what `~` joins as well."""

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:  # noqa: N802 - jinja2 names it so
        for joined in node.find_all(nodes.Concat):
            joined.nodes = [nodes.Filter(part, _PART, [], [], None, None, lineno=part.lineno) for part in joined.nodes]
        super().visit_Template(node, frame)


class _CallEnvironment(_Environment):
    """Fill in only strings that are not empty, and numbers, beside other text: the rest would name another target."""

    intercepted_binops = frozenset({"*", "**", "+"})
    code_generator_class = _PartsChecked

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator != "+":
            return super().call_binop(context, operator, left, right)
        if any(isinstance(side, str) and not side.strip() for side in (left, right)):
            raise SecurityError(_NO_PART)
        return left + right


def _part(value: Any) -> Any:
    if isinstance(value, Undefined):
        str(value)  # a strict undefined says here what is missing
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number and not (isinstance(value, str) and value.strip()):
        raise SecurityError(_NO_PART)
    return value


_PART = "engine_part"
_NO_PART = "a value in it is neither a number nor a string, or is empty"
_MOST_COMPILED = 1024


class _Compiler:
    """Keep compiled templates: compiling one takes milliseconds, and a tool's are the same at every call."""

    def __init__(self, environment: _Environment) -> None:
        self.expression = lru_cache(_MOST_COMPILED)(partial(environment.compile_expression, undefined_to_none=False))
        self.template = lru_cache(_MOST_COMPILED)(environment.from_string)


_ENVIRONMENT = _Environment(undefined=StrictUndefined, autoescape=False)
_FOR_VALUES = _Compiler(_ENVIRONMENT)
_CALL_ENVIRONMENT = _CallEnvironment(undefined=StrictUndefined, autoescape=False, finalize=_part)
_CALL_ENVIRONMENT.filters[_PART] = _part
_FOR_CALLS = _Compiler(_CALL_ENVIRONMENT)


def check(template: Any, names: frozenset[str], *, expression: bool = False) -> str | None:
    """Return what is wrong with a template, or None."""
    if expression and not (isinstance(template, str) and _expression(template) is not None):
        return "must be exactly one {{ expression }}"
    for text in texts_of(template):
        try:
            unknown = find_undeclared_variables(_ENVIRONMENT.parse(text)) - names
            _ENVIRONMENT.from_string(text)
        except TemplateError as error:
            return f"{error.message} in {text[:80]!r}"
        if unknown:
            return f"{min(unknown)!r} is not known in {text[:80]!r}; use {', '.join(sorted(names))}"
    return None


def render(arguments: Any, variables: Mapping[str, Any]) -> Any:
    """Return the JSON template filled in; a string that is one `{{ expression }}` keeps the value's own type.

    Raises ArgumentsInvalid naming the expression that leads nowhere.
    """
    return _bounded(_render(arguments, variables, _FOR_VALUES))


def render_call(arguments: Any, variables: Mapping[str, Any]) -> Any:
    """Do the same for the arguments of a call, which must name what it is about.

    Inside a longer string only strings that are not empty, and numbers, are filled in. A value of `result` by itself is
    not null and not empty, unless its expression says what stands for one that is.
    """
    return _bounded(_render(arguments, variables, _FOR_CALLS))


def _bounded(rendered: Any) -> Any:
    try:
        size = len(canonical(rendered).encode("utf-8", "surrogatepass"))
    except (TypeError, ValueError, RecursionError):
        raise ArgumentsInvalid("the rendered arguments are not JSON; name a value, not a method") from None
    if size > LIMIT:
        raise ArgumentsInvalid(f"the rendered arguments have {size} bytes; at most {LIMIT} are possible")
    return rendered


def holds(condition: str, variables: Mapping[str, Any]) -> bool:
    """Return whether the condition, one `{{ expression }}`, is true of the variables.

    Raises ArgumentsInvalid when it cannot be computed or gives text, which is neither true nor false.
    """
    expression = _expression(condition)
    if expression is None:
        raise ArgumentsInvalid(f"{condition[:80]!r} must be exactly one {{{{ expression }}}}")
    value = _evaluate(expression, condition, variables)
    if isinstance(value, str):
        raise ArgumentsInvalid(f"{condition[:80]!r} gives text, which is neither true nor false; compare it")
    return bool(value)


def describe(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the call a template stands for in one line: `recall_email(message_id=result.message_id)`."""
    return f"{tool}({', '.join(f'{name}={_describe(value)}' for name, value in arguments.items())})"


def _describe(value: Any) -> str:
    if isinstance(value, str) and (expression := _expression(value)) is not None:
        return expression
    return canonical(value)


def _render(value: Any, variables: Mapping[str, Any], compiler: _Compiler) -> Any:
    def rendered(text: str) -> Any:
        expression = _expression(text)
        if expression is None:
            return _text(text, variables, compiler)
        found = _evaluate(expression, text, variables, compiler)
        empty = found is None or (isinstance(found, str) and not found.strip())
        if empty and compiler is _FOR_CALLS and _names_target(text):
            raise ArgumentsInvalid(f"{text[:80]!r} is null or empty, and so names nothing")
        return found

    return with_texts(value, rendered)


@lru_cache(_MOST_COMPILED)
def _names_target(text: str) -> bool:
    """Return whether an expression takes a value of the answer as it is; others say what stands for an empty one."""
    tree = _ENVIRONMENT.parse(text)
    says = any(found.name in {"default", "d"} for found in tree.find_all(nodes.Filter))
    says = says or any(tree.find_all((nodes.Or, nodes.CondExpr)))
    return not says and "result" in find_undeclared_variables(tree)


@lru_cache(_MOST_COMPILED)
def _expression(text: str) -> str | None:
    """Return what stands between the braces when the text is one expression and nothing else."""
    if not (text.startswith("{{") and text.endswith("}}")):
        return None
    try:
        body = _ENVIRONMENT.parse(text).body
    except TemplateError:
        return None
    if len(body) != 1 or not isinstance(body[0], nodes.Output) or len(body[0].nodes) != 1:
        return None
    if isinstance(body[0].nodes[0], nodes.TemplateData):
        return None
    return text[2:-2].removeprefix("-").removesuffix("-").strip()


def _evaluate(expression: str, template: str, variables: Mapping[str, Any], compiler: _Compiler = _FOR_VALUES) -> Any:
    try:
        value = compiler.expression(expression)(**variables)
        if isinstance(value, Undefined):
            str(value)  # a strict undefined says here what is missing
    except Exception as error:  # a hostile value can make any filter fail
        raise _fault(template, error) from None
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | list | Mapping) else value


def _text(template: str, variables: Mapping[str, Any], compiler: _Compiler) -> str:
    text = ""
    try:
        for part in compiler.template(template).generate(**variables):
            text += part
            if len(text) > LIMIT:
                break
    except Exception as error:  # a hostile value can make any filter fail
        raise _fault(template, error) from None
    if len(text) > LIMIT:
        raise ArgumentsInvalid(f"{template[:80]!r} renders to more than {LIMIT} characters")
    return text


def _fault(template: str, error: Exception) -> ArgumentsInvalid:
    reason = str(error.message) if isinstance(error, TemplateError) else type(error).__name__
    # A message is shown only when what it quotes is in the template: anything else may be a tool's value.
    if any(part not in template and not part.endswith("object") for part in reason.split("'")[1::2]):
        reason = "something in it is not defined"
    return ArgumentsInvalid(f"{template[:80]!r} cannot be computed: {reason}")
