"""The commands `dev`, `worker`, `image build` and `trust`: run the parts on this machine, with which files."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from backstay import trust as trusting
from backstay.errors import BackstayError, SettingsInvalid
from backstay.settings import Settings, found_in
from backstay.shown import one_line, shell_words
from backstay.variables import environment
from gateways.served import Serving
from gateways.terminal.local.embedded import start_temporal
from gateways.terminal.local.keeping import DRAIN_S, stop_on_signal
from gateways.terminal.local.parts import Parts, keep_page, keep_worker
from gateways.terminal.local.ports import require_free
from gateways.terminal.local.serving import alone, variables_for
from gateways.terminal.policies.check import compared, told
from gateways.terminal.session import silence_logs
from gateways.terminal.terminal import Terminal

PAGE_PORT = 8234
_MODEL_S = 20.0


async def build_image(kind: Literal["python", "data"] | None = None) -> None:
    """Build the root image for programs from this Python, and print its hash.

    Parameters
    ----------
    kind:
        python: the standard library; data: also numpy and pandas; BACKSTAY_IMAGE by default
    """
    from sandbox.images.image import build_image

    settings = Settings.load()
    settings.claim_home()
    silence_logs(settings)
    images = settings.home.absolute() / "images"
    made: Any = await asyncio.to_thread(build_image, kind or settings.image, images)
    Terminal().result(f"{made.kind:<8} {made.hash}  Python {made.python}  {made.path}")


def trust(folder: Path = Path(), *, remove: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Trust a folder: from now on its files are obeyed, even if they change.

    Look at them first: they name programs that are started and models that are asked.

    Parameters
    ----------
    folder
        The folder; the current one by default. Folders inside it need trust of their own.
    remove
        No longer trust the folder.
    """
    if not folder.is_dir() and not remove:
        raise SettingsInvalid(f"FOLDER: {folder} is not a folder; name one that exists")
    terminal, variables = Terminal(), environment(None)
    if remove:
        terminal.say(f"no longer trusted: {trusting.distrust(folder, variables)}", "yellow")
        return
    real = trusting.trust(folder, variables)
    found = ", ".join(found_in(real, {})) or "no file that is obeyed, yet"
    terminal.say(f"trusted: {real} ({found}); undo it with: backstay trust --remove {shell_words(str(real))}", "green")


async def dev(
    *,
    port: int = 7233,
    ui_port: int = 8233,
    headless: Annotated[bool, Parameter(negative="")] = False,
    page_port: int = PAGE_PORT,
    no_page: Annotated[bool, Parameter(negative="")] = False,
    no_open: Annotated[bool, Parameter(negative="")] = False,
    db: Path | None = None,
    scripted: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Run a local Temporal server with its Web UI, a worker, and the page of approvals, until Ctrl-C.

    Parameters
    ----------
    port
        Port of Temporal, on loopback only.
    ui_port
        Port of the Web UI, on loopback only.
    headless
        Do not start the Web UI.
    page_port
        Port of the page of approvals, on loopback only.
    no_page
        Do not serve the page.
    no_open
        Do not open the page in a browser, which a terminal on a desktop does.
    db
        Database file of Temporal; temporal.db in BACKSTAY_HOME by default.
    scripted
        Serve a model that follows a script, for the example of `backstay init`; it needs no account.
    """
    asked = _DevOptions(port, None if headless else ui_port, None if no_page else page_port, db, scripted, not no_open)
    await _run(asked)


class _DevOptions(NamedTuple):
    """Hold what `dev` is asked to start, and where."""

    port: int
    ui_port: int | None
    page_port: int | None
    db: Path | None
    scripted: bool
    opens: bool
    """Whether the page is opened in a browser."""


async def _run(asked: _DevOptions) -> None:
    settings, terminal = Settings.load(), Terminal()
    settings.claim_home()
    namespace = settings.environment.get("TEMPORAL_NAMESPACE") or "default"
    database = asked.db or settings.home / "temporal.db"
    serving = Serving(temporal=f"127.0.0.1:{asked.port}", namespace=namespace, pid=os.getpid())
    async with alone(settings.home, database, serving) as tell:
        _require_ports({"--port": asked.port, "--ui-port": asked.ui_port, "--page-port": asked.page_port})
        stop = stop_on_signal()
        server = await start_temporal(
            port=asked.port,
            ui_port=asked.ui_port,
            database=database,
            log=settings.home / "logs" / "temporal.log",
            environment=settings.environment,
            namespace=namespace,
        )
        try:
            async with _model(scripted=asked.scripted) as script:
                model = None if script is None else variables_for(script)
                page = None if asked.page_port is None else f"http://127.0.0.1:{asked.page_port}"
                tell(serving.model_copy(update={"page": page, "script": script}))
                await _serve(Parts(terminal, settings, server, model, asked.page_port, opens=asked.opens), stop)
        finally:
            await server.stop(DRAIN_S)


def _require_ports(ports: Mapping[str, int | None]) -> None:
    for flag, port in ports.items():
        if port is not None:
            require_free(port, flag)


@asynccontextmanager
async def _model(*, scripted: bool) -> AsyncGenerator[str | None]:
    """Serve the scripted model, if it is wanted, and yield its address."""
    from backstay.testing.notes import open_example_model

    if not scripted:
        yield None
        return
    async with open_example_model() as model:
        yield model.base_url


async def _serve(parts: Parts, stop: asyncio.Event) -> None:
    terminal, settings, server = parts.terminal, parts.settings, parts.server
    model = parts.model
    terminal.say(f"Temporal    {server.address}, namespace {server.namespace}")
    if server.ui is not None:
        terminal.say(f"Web UI      {server.ui}/namespaces/{server.namespace}/workflows")
    if server.address != "127.0.0.1:7233" or settings.environment.get("TEMPORAL_ADDRESS"):
        terminal.say(f"elsewhere   in terminals of other folders, first run: export TEMPORAL_ADDRESS={server.address}")
    if model is not None:
        terminal.say(f"model       a script at {model['OPENAI_BASE_URL']}; it only knows the example of backstay init")
    _say_missing(terminal, settings, has_model=model is not None)
    asking = asyncio.create_task(_ask_model(terminal, settings, has_model=model is not None))
    ready = asyncio.Event()
    comparing = asyncio.create_task(_compare_policy(terminal, settings, ready))
    working = [asyncio.create_task(keep_worker(parts, ready))]
    if parts.page is not None:
        working.append(asyncio.create_task(keep_page(parts, parts.page)))
    stopping = asyncio.create_task(stop.wait())
    gone = asyncio.create_task(server.child.ended())
    try:
        await asyncio.wait({*working, stopping, gone}, return_when=asyncio.FIRST_COMPLETED)
        if gone.done():
            raise SettingsInvalid(
                f"Temporal stopped unexpectedly; its last output: {' / '.join(server.child.last) or 'nothing'}"
            )
        for task in working:
            if task.done():
                task.result()
    finally:
        tasks: list[asyncio.Task[Any]] = [*working, stopping, gone, asking, comparing]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    terminal.say("stopped; open runs continue at the next start")


def _say_missing(terminal: Terminal, settings: Settings, *, has_model: bool) -> None:
    """Say what a first run lacks, a line each, and how to get it."""
    from activities.endpoints.models_file import place_of

    lists_models = place_of(settings) is not None
    if not has_model and not settings.has_endpoint and not lists_models:
        terminal.say(
            "no key      set OPENAI_API_KEY, or OPENAI_BASE_URL for another endpoint; "
            "without an account: backstay dev --scripted",
            "yellow",
        )
        terminal.say(f"no model    so runs of {settings.model} are refused; BACKSTAY_MODEL names another", "yellow")
    if not settings.toolbox.exists():
        terminal.say(
            f"no tools    there is no {settings.toolbox}; write an example with: backstay init; "
            "or add a server: backstay toolbox add NAME -- COMMAND",
            "yellow",
        )


async def _ask_model(terminal: Terminal, settings: Settings, *, has_model: bool) -> None:
    """Ask the model for one token, so that a wrong key is a line here and not a question of the first run."""
    from activities.model.learned import LearnedDialects
    from activities.model.probing import probe
    from opening import open_endpoints

    if has_model:
        return
    async with open_endpoints(settings) as endpoints:
        target = endpoints.main()
        if not target.listed and not settings.has_endpoint:
            return
        if target.price is None:
            terminal.say(_no_price(target.name, listed=target.listed), "yellow")
        learned = LearnedDialects(settings.home)
        try:
            found = await probe(target, learned, within_s=_MODEL_S)
        except BackstayError as error:
            terminal.say(f"model       {target.name} does not answer: {error}", "red")
            return
        for said in found.refused:
            terminal.say(f"model       {target.name} refuses a form of the question: {one_line(said, 300)}", "yellow")
        if found.answered:
            how = f"; it is asked with {found.lesson}" if found.lesson else ""
            terminal.say(f"model       {target.name} answers{how}")


def _no_price(model: str, *, listed: bool) -> str:
    """Say that runs of a model without a price are refused, and the two ways on."""
    name = one_line(model, 80)
    prices = json.dumps({name: {"input": 1.0, "output": 4.0}})
    how = "give it a price in models.yaml" if listed else f"set BACKSTAY_PRICES='{prices}' (USD for 1M tokens)"
    return (
        f"no price    none is known for {name}, and runs have a limit in USD; {how}, "
        "or run with --budget.no-max-llm-cost-usd"
    )


async def _compare_policy(terminal: Terminal, settings: Settings, ready: asyncio.Event) -> None:
    """Say which lines of the policy name what is not there; a policy that cannot be read stops the worker anyway."""
    # It starts every server to ask for its tools, and the worker should not wait behind them.
    await ready.wait()
    with suppress(BackstayError):
        for found in await compared(settings):
            terminal.say(f"policy      {told(found)}", "red" if found.state == "error" else "yellow")
