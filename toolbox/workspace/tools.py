"""The tools of workspaces: what a model may call, how dangerous each is, and how each is taken back."""

from typing import Any

from backstay.tools.tool import Safety
from toolbox.providers.declaration import CallTemplate, Check, Declaration
from toolbox.providers.listing import ListedTool

_EFFECT = {"effect": "{{ effect.id }}"}
_READ = Declaration(safety=Safety.READ_ONLY)
_UNDO = CallTemplate(tool="restore", arguments={"snapshot": "{{ result.before }}", "expect": "{{ result.after }}"})
_UNDO_BY_ID = CallTemplate(tool="restore", arguments=_EFFECT)
_VERIFY = Check(
    tool="outcome",
    arguments=_EFFECT,
    applied_if="{{ result.applied }}",
    result="{{ result.answer }}",
    verify_is_final=True,
)
_PATH = {"type": "string", "maxLength": 4096, "description": "Relative to the workspace."}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
_TEXT = {"type": "string", "maxLength": 16 << 20}
_FLAG = {"type": "boolean"}
_ENCODING = {"enum": ["utf-8", "utf-16", "latin-1", "cp1252", "base64"]}

PREVIEWED = frozenset({"write_file", "edit_file", "move", "delete"})
"""What can be shown beforehand; nobody knows what a command will do."""
_COMMAND_S = 120.0


def _writes(safety: Safety, timeout: float | None = None) -> Declaration:
    """Return what is true of every tool that writes: it happens once, can be checked, and can be taken back."""
    return Declaration(
        safety=safety,
        idempotent=True,
        timeout=timeout,
        undo=_UNDO,
        undo_by_effect_id=_UNDO_BY_ID,
        verify=_VERIFY,
    )


def _tool(name: str, description: str, declared: Declaration, needed: str, /, **properties: Any) -> ListedTool:
    schema = {
        "type": "object",
        "properties": properties,
        "required": needed.split(),
        "additionalProperties": False,
    }
    return ListedTool(
        name=name,
        description=description,
        input_schema=schema,
        declared=declared,
        hidden=name in {"restore", "outcome"},
        previewed=name in PREVIEWED,
    )


_BEHIND = (
    _tool(
        "restore",
        "Bring the files that one effect changed back to what they were.",
        Declaration(safety=Safety.RESTRICTED_WRITE, idempotent=True),
        "",
        snapshot={"type": "string", "maxLength": 200},
        expect={"type": "string", "maxLength": 200},
        effect={"type": "string", "maxLength": 1000},
    ),
    _tool(
        "outcome",
        "Say whether an effect on the workspace took place.",
        _READ,
        "effect",
        effect={"type": "string", "maxLength": 1000},
    ),
)
FS_TOOLS = (
    _tool(
        "read_file",
        "Read a part of a file in the workspace: as text when it is text, else in base64.",
        _READ,
        "path",
        path=_PATH,
        offset=_COUNT | {"description": "The byte to begin at."},
        limit=_COUNT | {"minimum": 1, "maximum": 256 << 10, "description": "How many bytes; 64 KiB if not given."},
        encoding=_ENCODING,
    ),
    _tool(
        "list_directory",
        "List what is in a folder of the workspace, sorted by path.",
        _READ,
        "",
        path=_PATH,
        recursive=_FLAG,
        offset=_COUNT,
        limit=_COUNT | {"minimum": 1, "maximum": 2000},
    ),
    _tool(
        "search",
        "Find lines in the text files of the workspace, by a regular expression or literally.",
        _READ,
        "pattern",
        pattern={"type": "string", "minLength": 1, "maxLength": 2000},
        path=_PATH,
        glob={"type": "string", "maxLength": 500, "description": "Only files of such names, such as *.py."},
        literal=_FLAG,
        ignore_case=_FLAG,
        limit=_COUNT | {"minimum": 1, "maximum": 1000},
    ),
    _tool(
        "write_file",
        "Write a whole file in the workspace; folders on the way are made.",
        _writes(Safety.WRITE_SAFE),
        "path content",
        path=_PATH,
        content=_TEXT,
        encoding=_ENCODING,
        overwrite=_FLAG | {"description": "Whether a file that is there may be replaced; true if not given."},
    ),
    _tool(
        "edit_file",
        "Replace a text in a file of the workspace by another, exactly as often as you say it occurs.",
        _writes(Safety.WRITE_SAFE),
        "path old new",
        path=_PATH,
        old=_TEXT | {"minLength": 1},
        new=_TEXT,
        count=_COUNT | {"minimum": 1, "description": "How often `old` occurs; 1 if not given."},
    ),
    _tool(
        "move",
        "Move or rename a file or folder within the workspace.",
        _writes(Safety.WRITE_SAFE),
        "source destination",
        source=_PATH,
        destination=_PATH,
        overwrite=_FLAG,
    ),
    _tool(
        "delete",
        "Delete a file or folder of the workspace.",
        _writes(Safety.WRITE_SAFE),
        "path",
        path=_PATH,
        recursive=_FLAG | {"description": "Whether a folder goes with all that is in it."},
    ),
    *_BEHIND,
)
SHELL_TOOLS = (
    _tool(
        "run",
        "Run a command line of bash in the workspace, in a jail without network.",
        _writes(Safety.RESTRICTED_WRITE, _COMMAND_S),
        "command",
        command={"type": "string", "minLength": 1, "maxLength": 100_000},
        timeout_s={"type": "number", "exclusiveMinimum": 0, "maximum": 600},
    ),
    *_BEHIND,
)
