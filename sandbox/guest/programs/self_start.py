"""Notice when a program starts its own entry at top level: started again, its calls would be made twice."""

import ast
import sys
from types import CodeType, FrameType
from typing import Any, Self

from sandbox.guest.programs.source import Prepared, own

_COROUTINE = 0x80
_RUNS = ("run", "run_until_complete", "run_forever")


class SelfStart:
    """Watch the top level of a program while it is executed."""

    def __init__(self, prepared: Prepared) -> None:
        """Watch for the entry's own code; a top level that starts nothing is not slowed down by being watched."""
        codes = (one for one in prepared.code.co_consts if isinstance(one, CodeType) and one.co_name == prepared.entry)
        self._code = next(codes, None) if _may_start(prepared) else None
        self.started = False
        self.value: Any = None
        """What the entry returned, when it is no coroutine."""

    @property
    def code(self) -> CodeType | None:
        """Return the entry's code, when it was watched for."""
        return self._code

    def __enter__(self) -> Self:
        """Begin to watch."""
        if self._code is not None:
            sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, value: Any) -> None:
        if frame.f_code is self._code:
            self.started = True
            self.value = value if event == "return" else None
            if event == "return" or frame.f_code.co_flags & _COROUTINE:
                sys.setprofile(None)


def _may_start(prepared: Prepared) -> bool:
    """Return whether the top level calls a function of its own, or something that runs coroutines."""
    body = prepared.tree.body
    names = {*_RUNS, *(node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))}
    for node in own(body):
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if name in names:
                return True
            case _:
                pass
    return False
