"""The commands that write down which tools there are."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from backstay.cli.flags import User
from backstay.cli.terminal import Terminal
from backstay.cli.tools import open_builder, say_what_is_missing
from backstay.errors import SettingsInvalid
from backstay.library import room

Folder = Annotated[Path | None, Parameter(help="A folder for one file per provider; without it all is printed.")]


async def refresh(*, user: User = "singleton") -> int:
    """Ask every server for its tools and write manifest and bindings beneath BACKSTAY_HOME; prints the folder."""
    terminal = Terminal()
    async with open_builder() as builder:
        refreshed = await builder.refresh_manifest(user)
    manifest = refreshed.manifest
    say_what_is_missing(terminal, manifest)
    state = "written" if refreshed.changed else "unchanged"
    terminal.say(f"{state}: {len(manifest.tools)} tools, version {manifest.version}")
    terminal.result(str(refreshed.folder))
    return 0


async def docs(*, user: User = "singleton", output: Folder = None) -> int:
    """Write what the tools do, take and cost to undo as Markdown, one page per provider."""
    terminal = Terminal()
    async with open_builder() as builder:
        manifest = await builder.manifest(user)
    say_what_is_missing(terminal, manifest)
    pages = room("toolbox.manifest.docs").tool_docs(manifest)
    if output is None:
        terminal.result("\n".join(pages.values()))
        return 0
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (output / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsInvalid(f"--output: {output} cannot be written: {error.strerror}; name another folder") from None
    for name in pages:
        terminal.result(str(output / name))
    return 0
