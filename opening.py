"""Open what the settings name, and read the files of the operator, for the worker and for commands beside it.

May import: activities, backstay, sandbox, store, system, toolbox.

A room is imported where it is opened: a command opens one of these, and the sandbox role holds no code that knows a
model, a tool or a database.
"""

import os
import stat
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from backstay.errors import BackstayError, PolicyInvalid, SettingsInvalid
from backstay.policies.policy import Policy
from backstay.policies.sections import refuse_emptied
from backstay.profile import Profiles
from backstay.rooms import house
from backstay.settings import Settings
from backstay.tools.connection import ConnectionPlace
from backstay.variables import secrets_of_headers, variable_files
from backstay.yaml_text import read_yaml

if TYPE_CHECKING:
    from temporalio.client import Client

    from activities.definitions import DefinitionFolder
    from activities.endpoints.endpoints import Endpoints
    from activities.resources import Resources
    from sandbox.limits import Limits
    from sandbox.workspaces.client import WorkspaceClient
    from store.blobs.objects import ObjectLocation
    from store.blobs.shown import ShownBlobStore
    from store.fitness import Belongings
    from store.store import Store
    from system.places import WatchedPath
    from toolbox.configuration.configuration import Configuration
    from toolbox.oauth.connections import OAuthConnections
    from toolbox.own_servers.registry import UserServerRegistry
    from toolbox.toolbox import Toolbox

_MARKER_S = 10
"""How long the sandbox role waits for the first worker of a new installation to make the folder of payloads."""
_PLAIN = {"PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV"}
"""Variables that the sandbox role gets as they are."""


def read_policy(path: Path) -> Policy:
    """Return the operator's policy; without a file, the default one. Raises SettingsInvalid or PolicyInvalid."""
    if not path.exists():
        return Policy()
    try:
        refuse_emptied(data := yaml_of(path))
        return Policy.admit(data)
    except PolicyInvalid as error:
        raise PolicyInvalid(f"{path}: {error}") from None


def read_offered(settings: Settings) -> "DefinitionFolder":
    """Return the operator's definitions; raises SettingsInvalid for a file that cannot be used."""
    from activities.definitions import read_definitions

    found = read_definitions(settings.definitions)
    if found.faults:
        raise SettingsInvalid(f"{settings.definitions}: {'; '.join(found.faults.values())}")
    return found


def read_profiles(path: Path) -> Profiles:
    """Return the operator's profiles; without a file, the built-in ones. Raises SettingsInvalid."""
    return Profiles.admit(yaml_of(path), str(path)) if path.exists() else Profiles()


def yaml_of(path: Path, kind: type[yaml.SafeLoader] = yaml.SafeLoader) -> Any:
    """Return what is in a file, read by this kind of loader; raises SettingsInvalid for one that is no YAML."""
    try:
        return read_yaml(path.read_text(encoding="utf-8"), kind)
    except yaml.YAMLError as error:
        raise SettingsInvalid(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{path}: cannot be read: {error}") from error


def require_files(settings: Settings) -> None:
    """Raise what makes a file of the operator unusable."""
    from activities.endpoints.models_file import read_models
    from toolbox.configuration.load import load

    read_policy(settings.policy)
    read_profiles(settings.profiles)
    read_models(settings)
    read_offered(settings)
    configuration, _ = load(settings.toolbox, settings.environment, optional=not settings.names_toolbox)
    require_closed(settings, _modules_of(configuration))


def require_closed(settings: Settings, modules: Sequence[str]) -> int:
    """Raise SettingsInvalid where others could write a file of the operator; return how many files there are.

    A person who can write one could allow themselves anything, and a run writes below the folder of workspaces.
    """
    found = [path for path in (*variable_files(), *operator_files(settings, modules)) if path.exists()]
    for path in found:
        if why := _open_to_others(path, settings):
            raise SettingsInvalid(f"{path} {why}")
    return len(found)


def _open_to_others(path: Path, settings: Settings) -> str:
    """Return who else could write a file, and what to do; empty where nobody else can."""
    real = Path(os.path.realpath(path))
    rooms = Path(os.path.realpath(settings.workspaces or settings.home / "workspaces"))
    if real.is_relative_to(rooms):
        return f"lies in the folder of workspaces {rooms}, where runs write; move it elsewhere"
    for place in (real, real.parent):
        mode = place.stat().st_mode
        # In a folder such as /tmp, only the owner of a file may replace it.
        if mode & stat.S_IWOTH and not (place != real and mode & stat.S_ISVTX):
            return (
                f"can be written by every user of this machine; run: chmod o-w {place}; where that changes nothing, as "
                "on a Windows drive, move it to a file system of Linux, such as that of WSL"
            )
    return ""


def operator_files(settings: Settings, modules: Sequence[str]) -> list[Path]:
    """Return the files that a worker reads at its start, the code of these modules included; some may be missing."""
    from activities.definitions import definition_files
    from activities.endpoints.models_file import place_of
    from toolbox.python_tools.load import source_files

    found = [settings.toolbox, settings.policy, settings.profiles]
    found += definition_files(settings.definitions)
    with suppress(BackstayError):
        found.append(place_of(settings) or settings.models)
    return [*found, *source_files(modules, settings.toolbox.absolute().parent)]


def tool_modules(settings: Settings) -> list[str]:
    """Return the modules of Python tools and checks that the toolbox names; none where it cannot be read."""
    from toolbox.configuration.load import load

    with suppress(BackstayError):
        return _modules_of(load(settings.toolbox, settings.environment, optional=True)[0])
    return []


def _modules_of(configuration: "Configuration") -> list[str]:
    return [entry.module for entry in configuration.python.values() if entry.module] + [*configuration.safety]


def open_endpoints(settings: Settings) -> AbstractAsyncContextManager["Endpoints"]:
    """Open the model endpoints that the settings and models.yaml name."""
    from activities.endpoints.endpoints import open_endpoints

    return open_endpoints(settings)


def open_store(settings: Settings, *, signs: bool = False) -> AbstractAsyncContextManager["Store"]:
    """Open the store that the settings name; only a worker in the runs role `signs` what it writes to the ledger."""
    from backstay.task.ledger.keys import Signer
    from store.opening import open_store

    key = settings.ledger_key if signs else None
    keys = [key.get_secret_value() for key in settings.encryption_keys]
    return open_store(
        database_url=settings.database_url_text,
        home=settings.home,
        blobs=settings.blobs,
        payloads_in_database=settings.payloads == "database",
        objects=objects_of(settings, settings.payloads),
        encryption_keys=keys,
        signer=None if key is None else Signer(key.get_secret_value()),
    )


def objects_of(settings: Settings, place: str) -> "ObjectLocation | None":
    """Return where objects of a place of payloads are; None where it is not a bucket. Raises SettingsInvalid."""
    from store.blobs.objects import place_of

    return place_of(place, settings.s3_endpoint, settings.environment) if place.startswith("s3://") else None


def belongings_of(settings: Settings) -> "Belongings":
    """Return what all workers of one store must have in common."""
    from store.fitness import Belongings

    approver = settings.approver_key
    return Belongings(
        keys={
            "BACKSTAY_ENCRYPTION_KEYS": [key.get_secret_value() for key in settings.encryption_keys],
            "BACKSTAY_APPROVER_KEY": [] if approver is None else [approver.get_secret_value()],
        },
        toolbox=settings.toolbox.read_bytes() if settings.toolbox.is_file() else b"",
    )


def open_workspaces(settings: Settings) -> AbstractAsyncContextManager["WorkspaceClient"]:
    """Open the workspaces that the settings name."""
    from sandbox.workspaces.client import open_workspace_client

    return open_workspace_client(
        settings.workspaces,
        home=settings.home,
        nsjail=settings.nsjail,
        artifacts_mb=settings.artifacts_mb,
        root=settings.shell_root,
        rooms=house(),
        variables=settings.environment,
    )


def open_toolbox(
    settings: Settings, workspaces: "WorkspaceClient | None" = None, store: "Store | None" = None
) -> AbstractAsyncContextManager["Toolbox"]:
    """Open the toolbox that the settings name; servers at which people sign in need the store."""
    from sandbox.isolation.command_jail import CommandJail
    from toolbox.toolbox import open_toolbox

    return open_toolbox(
        settings.toolbox,
        environment=settings.environment,
        home=settings.home,
        confinement=CommandJail(nsjail=settings.nsjail, home=settings.home, image=settings.image),
        workspaces=workspaces,
        connections=None if store is None else _place(settings, store),
        optional=not settings.names_toolbox,
    )


def _place(settings: Settings, store: "Store") -> ConnectionPlace:
    # Operations of the store are attributes that are called, which no type checker takes for methods.
    connections: Any = store.connections
    own_servers: Any = store.own_servers
    return ConnectionPlace(connections, settings.url, own_servers)


def open_own_servers(settings: Settings, store: "Store") -> "UserServerRegistry | None":
    """Return what adds servers of users; None where the operator allows none. Raises ToolboxInvalid."""
    from toolbox.configuration.load import load

    rules = load(settings.toolbox, settings.environment, optional=not settings.names_toolbox)[0].users_servers
    if rules is None:
        return None
    from toolbox.own_servers.registry import UserServerRegistry

    own_servers: Any = store.own_servers
    return UserServerRegistry(rules, own_servers)


@asynccontextmanager
async def open_sign_ins(settings: Settings, store: "Store") -> AsyncGenerator["OAuthConnections | None"]:
    """Open what signs people in at the servers of the toolbox; None where there are none. Raises ToolboxInvalid."""
    from toolbox.configuration.load import load

    configuration, _ = load(settings.toolbox, settings.environment, optional=not settings.names_toolbox)
    if not configuration.signs_in:
        yield None
        return
    from toolbox.oauth.connections import OAuthConnections

    place = _place(settings, store)
    connections = OAuthConnections(configuration.servers, place.store, place.page)
    try:
        yield connections
    finally:
        await connections.close()


@asynccontextmanager
async def open_fit_store(settings: Settings, client: "Client") -> AsyncGenerator["Store"]:
    """Open the store for a worker that fits it; raises WorkerMisfit for one that does not."""
    from backstay.client.roles import demand_same_store
    from store.database.faults import opening_faults

    async with open_store(settings, signs=True) as store:
        await demand_same_store(client, settings.task_queue, store.identity.id)
        # A file may be damaged where only these look.
        with opening_faults():
            await store.fitness.demand(belongings_of(settings))
            await store.renewing.renew()
            await store.deltas.sweep()
            if settings.payloads != "files":
                await store.blobs.move_spilled()
        yield store


def secrets_of(client: "Client") -> frozenset[str]:
    """Return the secrets that Temporal is reached with, which its own file of settings may hold."""
    connected = client.service_client.config
    return frozenset({connected.api_key or "", *secrets_of_headers(connected.rpc_metadata)})


@asynccontextmanager
async def open_resources(
    settings: Settings, client: "Client", opened: "Store | None" = None
) -> AsyncGenerator["Resources"]:
    """Open store, toolbox and model for one worker, and close them at the end; a store that is open is used."""
    from activities.resources import Resources
    from backstay.client.executions import register_search_attributes
    from backstay.client.roles import find_sandbox
    from backstay.redaction.redactor import Redactor

    policy, profiles = read_policy(settings.policy), read_profiles(settings.profiles)
    definitions = read_offered(settings)
    known = settings.secrets() | secrets_of(client)
    async with (
        open_store(settings, signs=True) if opened is None else nullcontext(opened) as store,
        open_workspaces(settings) as workspaces,
        open_toolbox(settings, workspaces, store) as toolbox,
        open_endpoints(settings) as endpoints,
    ):
        resources = Resources(
            settings=settings,
            store=store,
            toolbox=toolbox,
            policy=policy,
            profiles=profiles,
            definitions=definitions,
            redactor=Redactor(known | toolbox.secrets | endpoints.models.secrets),
            endpoints=endpoints,
            temporal=client,
            search_attributes=await register_search_attributes(client),
            find_sandbox=lambda: find_sandbox(client, settings, store.identity.id),
            workspaces=workspaces,
        )
        workspaces.is_over = resources.is_over
        yield resources


def limits_of(settings: Settings) -> "Limits":
    """Return the caps of every program."""
    from sandbox.limits import Limits

    return Limits(
        memory_mb=settings.program_memory_mb,
        cpu_s=settings.program_cpu_seconds,
        wall_s=settings.program_round_seconds,
        rounds=settings.program_rounds,
        calls_per_batch=settings.program_batch_calls,
        frame_bytes=settings.program_frame_bytes,
        output_kept=min(Limits().output_kept, settings.program_output_bytes),
        output_bytes=settings.program_output_bytes,
    )


async def find_blobs(client: "Client", settings: Settings, store: str) -> "tuple[ShownBlobStore, str]":
    """Return the payloads that the sandbox role works on, and the id of their store, which its parent may know.

    Raises WorkerMisfit.
    """
    from store.blobs.marker import await_marker
    from store.blobs.shown import FileBlobStore

    if settings.payloads == "files":
        store = store or await await_marker(blobs_of(settings), _MARKER_S)
        return FileBlobStore(blobs_of(settings)), store
    from activities.programs.fetched_blobs import FetchedBlobStore, RunsRole

    runs_role = RunsRole(client, settings.task_queue)
    store = store or await runs_role.find_store()
    return FetchedBlobStore(runs_role, store), store


def blobs_of(settings: Settings) -> Path:
    """Return the folder of payloads."""
    return settings.blobs or settings.home / "blobs"


def sandbox_variables(settings: Settings) -> dict[str, str]:
    """Return the environment of the sandbox role; no secret is in it."""
    variables = {name: value for name, value in settings.environment.items() if _harmless(name)}
    places = {"HOME": settings.home, "BLOBS": settings.blobs, "NSJAIL": settings.nsjail}
    variables |= {f"BACKSTAY_{name}": str(place) for name, place in places.items() if place is not None}
    variables |= {"BACKSTAY_TASK_QUEUE": settings.task_queue, "BACKSTAY_IMAGE": settings.image}
    # Neither the address of a bucket nor what opens it: programs ask the runs role, as they do with the database.
    variables["BACKSTAY_PAYLOADS"] = "files" if settings.payloads == "files" else "database"
    variables["BACKSTAY_TRANSIENT_SECONDS"] = str(settings.transient_seconds)
    return variables


def _harmless(name: str) -> bool:
    return name.startswith(("TEMPORAL_", "BACKSTAY_PROGRAM_")) or name in _PLAIN


def places_of(settings: Settings) -> "list[WatchedPath]":
    """Return the folders that a worker keeps open; one that is replaced under it would part it from the others."""
    from system.places import WatchedPath

    home = WatchedPath("BACKSTAY_HOME", settings.home.absolute())
    return (
        [home, WatchedPath("BACKSTAY_BLOBS", blobs_of(settings).absolute())] if settings.payloads == "files" else [home]
    )
