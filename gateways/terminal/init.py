"""The command `init`: write the files of a first run here, and trust them."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from backstay.shown import shell_words
from backstay.variables import environment
from gateways.terminal.exit_codes import DONE
from gateways.terminal.flags import Output
from gateways.terminal.servers import StartAll, claim_folder, holds, servers_of, take_over, trust_folder, write_new
from gateways.terminal.terminal import Terminal

_SERVER = Path("example_server.py")
_FILES = {
    "policy.yaml": ("policy.yaml", "what runs may do without asking"),
    ".env.example": ("env.example", "variables that you may set in .env"),
}
_TASK = "Note that the report is due on Friday"


async def init(
    *,
    from_host: Annotated[Path | None, Parameter(name="--import")] = None,
    yes: StartAll = False,
    output: Output = "text",
) -> None:
    """Write toolbox.json, policy.yaml, .env.example and an example server here, and trust this folder.

    Parameters
    ----------
    from_host
        Take over the servers that Claude Desktop, Cursor or VS Code names in this file, instead of the example.
    """
    terminal, variables = Terminal(), environment(None)
    for name in ("BACKSTAY_TOOLBOX", "BACKSTAY_POLICY"):
        if variables.get(name):
            raise SettingsInvalid(f"{name}: set to {variables[name]}, so files written here would not count; unset it")
    claim_folder()
    found = []
    if from_host is not None:
        found = servers_of(terminal, from_host, Settings.load())
        if not yes and not terminal.interactive:
            raise SettingsInvalid(f"--yes: nobody can be asked here; look at what {from_host} names, then give --yes")
    files = _write_files(terminal, with_example=from_host is None)
    trust_folder(terminal)
    added = await take_over(terminal, found, yes=yes) if found else []
    if found:
        terminal.say("next: backstay dev", "green")
    else:
        terminal.say("next, without an account: backstay dev --scripted", "green")
        terminal.say(f"then, in another terminal: backstay run {shell_words(_TASK)}", "green")
    terminal.results(output, {"files": files, "servers": added}, [server["server"] for server in added])


def _write_files(terminal: Terminal, *, with_example: bool) -> list[dict[str, object]]:
    """Write what is missing, and return each file with whether it was written.

    Raises SettingsInvalid for a file that toolbox.json would start and nobody looked at.
    """
    has_toolbox, told = Path("toolbox.json").exists(), list[dict[str, object]]()
    if with_example and not has_toolbox:
        if not write_new(_SERVER, "example_server.py") and not holds(_SERVER, "example_server.py"):
            raise SettingsInvalid(f"{_SERVER}: is there already, and toolbox.json would start it; move it away first")
        terminal.say(f"written: {_SERVER!s:<18} an MCP server that keeps notes in notes.json")
        told.append({"file": str(_SERVER), "written": True})
    files = {"toolbox.json": ("toolbox.json" if with_example else "no_servers.json", "the tools"), **_FILES}
    for name, (template, what) in files.items():
        written = write_new(Path(name), template)
        terminal.say(f"{'written' if written else 'kept'}: {name:<18} {what}", "" if written else "yellow")
        told.append({"file": name, "written": written})
    return told


async def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Which shell.")], /) -> int:
    """Print the script that lets a shell complete commands and flags of backstay.

    bash: `backstay completion bash > ~/.local/share/bash-completion/completions/backstay`
    zsh: `backstay completion zsh > ~/.zfunc/_backstay`, where `~/.zfunc` is in `fpath`
    fish: `backstay completion fish > ~/.config/fish/completions/backstay.fish`
    """
    from gateways.terminal.app import build

    Terminal().result(build().generate_completion(prog_name="backstay", shell=shell))
    return DONE
