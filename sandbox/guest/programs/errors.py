"""Errors that a program meets, and each as one line for a model that cannot see the traceback."""

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from sandbox.guest.programs.source import FILENAME

_MOST = 1000
_SHOWN = 3


class ToolError(Exception):
    """A tool did not do what it was asked to; `error_type` says in one word why, the text says it in full."""

    def __init__(self, message: str = "", error_type: str = "ToolError", tool: str = "") -> None:
        """Hold what the tool said."""
        super().__init__(message)
        self.error_type = error_type
        self.tool = tool


class OutcomeSettled(Exception):
    """A call took place, and its answer is lost; it must not be made again.

    It is no ToolError: a reaction to a tool that failed, such as another try, would do it twice.
    """

    happened = True

    def __init__(self, message: str = "", tool: str = "", effect: int = 0, by: str = "") -> None:
        """Hold what is known: the tool, the number of the effect, and who found out that it took place."""
        super().__init__(message)
        self.tool = tool
        self.effect = effect
        self.by = by


class DeadlineExceeded(BaseException):
    """The program has slept past the time that it was given; handlers of ordinary errors do not hold it up."""


class NeverAwaited(RuntimeError):
    """A call was started, but nothing awaits it."""


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return type, message and the program's own line of an error."""
    return {"type": type(error).__name__[:_MOST], "message": _message(error), "line": line_of(error)}


def line_of(error: BaseException) -> int | None:
    """Return the innermost line of the program that led to the error."""
    if isinstance(error, SyntaxError) and error.filename == FILENAME:
        return error.lineno
    lines = [line for name, line in _places(error.__traceback__) if name == FILENAME]
    inner = next(map(line_of, error.exceptions), None) if isinstance(error, BaseExceptionGroup) else None
    return inner or (lines[-1] if lines else None)


def _places(traceback: TracebackType | None) -> Iterator[tuple[str, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next


def _message(error: BaseException) -> str:
    try:
        text = _text(error)
        # Lone surrogates in it must not keep the line from leaving the jail.
        return " ".join(text[: 4 * _MOST].encode("utf-8", "backslashreplace").decode().split())[:_MOST]
    except Exception as another:
        return f"its text cannot be shown: {type(another).__name__}"


def _text(error: BaseException) -> str:
    match error:
        case ToolError(tool=tool) if tool:
            return f"{tool}: {error.error_type}: {error}"
        case SyntaxError():
            return error.msg
        case KeyError():
            return f"key {error} is not there"
        case BaseExceptionGroup():
            inner = [f"{type(part).__name__}: {_text(part)}" for part in error.exceptions[:_SHOWN]]
            more = len(error.exceptions) - len(inner)
            return "; ".join([str(error), *inner, *([f"and {more} more"] if more else [])])
        case _:
            return str(error)
