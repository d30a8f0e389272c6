"""What the file tools may answer: read strictly, since hostile files were read on the way to it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from backstay.errors import SandboxLost
from backstay.shown import message_line
from sandbox.programs.crash import ProgramCrashed
from sandbox.programs.frames import strict_json
from system.frames import unframed

MOST_ANSWER = 8 << 20
MOST_MEASURED = 1000

Path_ = Annotated[str, Field(max_length=70_000)]
Line = Annotated[str, Field(max_length=2000)]
Count = Annotated[int, Field(ge=0)]
Kind = Literal["file", "directory", "symlink", "fifo", "socket", "device", "unknown"]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _ReadAnswer(_Answer):
    path: Path_
    size: Count
    encoding: str = Field(max_length=20)
    content: str
    offset: Count
    next_offset: Count | None


class _Entry(_Answer):
    path: Path_
    kind: Kind
    size: Count
    target: Line | None = None
    mode: Annotated[str, Field(pattern=r"^[0-7]{4}$")] | None = None


class _ListAnswer(_Answer):
    path: Path_
    entries: Annotated[list[_Entry], Field(max_length=2000)]
    total: Count
    next_offset: Count | None
    skipped: Annotated[list[Path_], Field(max_length=20)]


class _Match(_Answer):
    path: Path_
    line: Count
    text: Line


class _SearchAnswer(_Answer):
    matches: Annotated[list[_Match], Field(max_length=1000)]
    files: Count
    skipped: Annotated[list[Path_], Field(max_length=20)]
    complete: bool


class _File(_Answer):
    path: Path_
    size: Count
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    replaced: Count | None = None


class _MoveAnswer(_Answer):
    source: Path_
    destination: Path_
    kind: Kind


class _DeleteAnswer(_Answer):
    path: Path_
    kind: Kind
    deleted: Count


class _MeasureAnswer(_Answer):
    path: Path_
    size: Count | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    error: Line | None = None


class _Sizes(_Answer):
    files: Annotated[list[_MeasureAnswer], Field(max_length=MOST_MEASURED)]


class _CheckAnswer(_Answer):
    counted: Count
    failed: Count
    lines: Annotated[list[Line], Field(max_length=50)]
    printed: Annotated[str, Field(max_length=20_000)]


class _ShowAnswer(_Answer):
    diff: Annotated[str, Field(max_length=100_000)]


_SHAPES: Mapping[str, type[_Answer]] = MappingProxyType(
    {
        "read_file": _ReadAnswer,
        "list_directory": _ListAnswer,
        "search": _SearchAnswer,
        "measure": _Sizes,
        "check": _CheckAnswer,
        "write_file": _File,
        "edit_file": _File,
        "move": _MoveAnswer,
        "delete": _DeleteAnswer,
        "show": _ShowAnswer,
    }
)


def read_answer(tool: str, said: bytes) -> dict[str, Any] | str:
    """Return what a file tool answered, or the line that says why it did nothing; `show` is what it would change.

    Raises SandboxLost when that is not what our own program says.
    """
    try:
        value = strict_json(unframed(said, MOST_ANSWER))
    except (ValueError, ProgramCrashed) as error:
        raise _never(str(error)) from None
    match value:
        case {"error": str(line), **rest} if not rest:
            return message_line(line, 2000)
        case {"ok": dict(answer), **rest} if not rest:
            return _checked(tool, answer)
        case _:
            raise _never("it holds neither an answer nor an error")


def _checked(tool: str, answer: dict[str, Any]) -> dict[str, Any]:
    try:
        return _SHAPES[tool].model_validate(answer).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise _never(f"{error.errors()[0]['loc']} does not fit") from None


def _never(fault: str) -> SandboxLost:
    return SandboxLost(f"the file tool said what it never says: {fault}")
