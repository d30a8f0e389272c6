"""An example of an MCP server: notes in a file beside it. Change it, or put a server of your own in its place."""

import json
import uuid
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel

FILE = Path(__file__).with_name("notes.json")
server = MCPServer("notes", instructions="Short notes in a file.", log_level="WARNING")


class Note(BaseModel):
    """One note."""

    id: str
    text: str


class Notes(BaseModel):
    """All notes, the newest last."""

    notes: list[Note]


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def list_notes() -> Notes:
    """List all notes."""
    return _read()


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False))
def add_note(text: str, client_token: str = "") -> Note:
    """Write a note. The same client_token writes it once, however often it is sent."""
    kept = _read().notes
    note = Note(id=client_token or uuid.uuid4().hex, text=text)
    known = next((other for other in kept if other.id == note.id), None)
    if known is None:
        _write([*kept, note])
    return known or note


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False))
def delete_note(id: str) -> Note:  # noqa: A002 - the name that the model reads
    """Delete a note for good."""
    kept = _read().notes
    found = next((note for note in kept if note.id == id), None)
    if found is None:
        raise ToolError(f"there is no note {id}")
    _write([note for note in kept if note.id != id])
    return found


def _read() -> Notes:
    return Notes.model_validate_json(FILE.read_bytes()) if FILE.exists() else Notes(notes=[])


def _write(notes: list[Note]) -> None:
    """Put a whole file in place of the old one, so that a crash leaves either."""
    unfinished = FILE.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(Notes(notes=notes).model_dump(), indent=2) + "\n", encoding="utf-8")
    unfinished.replace(FILE)


if __name__ == "__main__":
    server.run()
