"""The commands `memory search`, `memory show`, `memory forget` and `memory mcp`."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backstay.errors import RunNotFound, SettingsInvalid
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.terminal.flags import By, Limit, Output
from gateways.terminal.memory.reading import Whose, found_item, lines_of, owner_named
from gateways.terminal.session import account_name, open_store, require_store
from gateways.terminal.store import is_confirmed
from gateways.terminal.terminal import Terminal

if TYPE_CHECKING:
    from store.store import Store


Most = Annotated[Limit, Parameter(help="How many items at most.")]
Item = Annotated[int, Parameter(help="Number of the item, as `memory search` shows it.")]


async def search(query: str, /, *, user: Whose = None, limit: Most = 8, output: Output = "text") -> int:
    """Search the memory that runs of a user have left: their tasks, calls, answers of tools, and results.

    Parameters
    ----------
    query
        The words that tell it apart.
    """
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with open_store(settings) as store:
        found = await store.memory.search(owner_named(user), query, limit=limit)
    if not found and output == "text":
        terminal.say(f"nothing is remembered about this for {one_line(owner_named(user), 80)}", "yellow")
    lines = [line for recalled in found for line in lines_of(recalled)]
    terminal.results(output, [recalled.told() for recalled in found], lines)
    return 0


async def show(item: Item, /, *, user: Whose = None, output: Output = "text") -> int:
    """Show one item with its whole text, and whose words it holds."""
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with open_store(settings) as store:
        found = await found_item(store, owner_named(user), item)
    terminal.results(output, found.told(), lines_of(found, whole=True))
    return 0


async def forget(
    item: Annotated[int | None, Parameter(help="Number of the item, as `memory search` shows it.")] = None,
    /,
    *,
    run: Annotated[str | None, Parameter(help="Workflow ID of a run, which is forgotten as a whole.")] = None,
    user: Whose = None,
    by: By = None,
    yes: Annotated[bool, Parameter(negative="", help="Do not ask for confirmation.")] = False,
) -> int:
    """Erase an item, or all of a run that has ended, with its payloads; the ledger says that it was forgotten."""
    settings, terminal = Settings.load(), Terminal()
    if (item is None) == (run is None):
        raise SettingsInvalid("forget: name an item by its number, or a run with --run; one of them")
    require_store(settings)
    owner, who, code = owner_named(user), by or account_name(), 0
    async with open_store(settings) as store:
        if item is not None:
            found = await found_item(store, owner, item)
            question = f"Forget item {item}, a {found.item.kind} of {one_line(found.told()['run'], 80)}? [y/N]"
            if not await is_confirmed(terminal, question, "forget it", yes=yes):
                return 1
            erased = await store.forgetting.item(found.item, by=who)
        else:
            key = await _key_of(store, owner, str(run))
            question = f"Forget run {one_line(str(run), 80)}? It can then not be undone any more. [y/N]"
            if not await is_confirmed(terminal, question, "forget it", yes=yes):
                return 1
            erased = await store.forgetting.run(key, owner, by=who)
            for fault in await _snapshots_kept(settings, key):
                terminal.say(f"snapshots of one workspace stay until `backstay prune`: {one_line(fault, 300)}", "red")
                code = 1
    terminal.say(f"forgotten; {erased} payloads were erased. Backups, and Temporal's history, keep what they hold")
    return code


async def _snapshots_kept(settings: Settings, run: str) -> list[str]:
    """Remove what a run left in workspaces, with its snapshots; return why some of these had to stay."""
    from sandbox.workspaces.effects import prune_workspaces

    _, faults = await prune_workspaces(settings.home, [run], theirs_only=True)
    return faults


async def mcp(*, user: Whose = None) -> None:
    """Offer the memory of one user to a client that starts this command and speaks MCP over stdin and stdout."""
    from gateways.terminal.memory.serving import serve

    settings = Settings.load()
    require_store(settings)
    async with open_store(settings) as store:
        await serve(store, owner_named(user))


async def _key_of(store: "Store", owner: str, workflow_id: str) -> str:
    """Return the key of a run of which a user's memory has something; raises RunNotFound."""
    row = await store.runs.get(workflow_id)
    if row is None or not await store.memory.items.of_run(owner, row.run):
        whose = one_line(owner, 80)
        raise RunNotFound(f"--run: nothing of a run {one_line(workflow_id, 100)} is in the memory of {whose}")
    return row.run
