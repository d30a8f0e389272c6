"""Open what the settings name, and read the files of the operator, for the worker and for commands beside it."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from backstay.errors import PolicyInvalid, SettingsInvalid
from backstay.policies.policy import Policy
from backstay.profile import Profiles
from backstay.rooms import house
from backstay.settings import Settings
from backstay.yaml_text import read_yaml

if TYPE_CHECKING:
    from activities.definitions import Definitions
    from activities.endpoints.endpoints import Endpoints
    from sandbox.workspaces.client import WorkspaceClient
    from store.fitness import Belongings
    from store.store import Store
    from toolbox.toolbox import Toolbox


def read_policy(path: Path) -> Policy:
    """Return the operator's policy; without a file, the default one. Raises SettingsInvalid or PolicyInvalid."""
    try:
        return Policy.admit(yaml_of(path)) if path.exists() else Policy()
    except PolicyInvalid as error:
        raise PolicyInvalid(f"{path}: {error}") from None


def read_offered(settings: Settings) -> "Definitions":
    """Return the operator's definitions; raises SettingsInvalid for a file that cannot be used."""
    from activities.definitions import read_definitions  # noqa: PLC0415 - a command opens one of these

    found = read_definitions(settings.definitions)
    if found.faults:
        raise SettingsInvalid(f"{settings.definitions}: {'; '.join(found.faults.values())}")
    return found


def read_profiles(path: Path) -> Profiles:
    """Return the operator's profiles; without a file, the built-in ones. Raises SettingsInvalid."""
    return Profiles.admit(yaml_of(path), str(path)) if path.exists() else Profiles()


def yaml_of(path: Path) -> Any:
    """Return what stands in a file; raises SettingsInvalid for one that is no YAML."""
    try:
        return read_yaml(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise SettingsInvalid(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{path}: cannot be read: {error}") from error


def open_endpoints(settings: Settings) -> AbstractAsyncContextManager["Endpoints"]:
    """Open the model endpoints that the settings and models.yaml name."""
    from activities.endpoints.endpoints import open_endpoints  # noqa: PLC0415 - a command opens one of these

    return open_endpoints(settings)


def open_store(settings: Settings) -> AbstractAsyncContextManager["Store"]:
    """Open the store that the settings name."""
    from store.opening import open_store  # noqa: PLC0415 - a command opens one of these

    keys = [key.get_secret_value() for key in settings.encryption_keys]
    return open_store(
        database_url=settings.database_url_text,
        home=settings.home,
        blobs=settings.blobs,
        payloads_in_database=settings.payloads == "database",
        encryption_keys=keys,
    )


def belongings_of(settings: Settings) -> "Belongings":
    """Return what all workers of one store must have in common."""
    from store.fitness import Belongings  # noqa: PLC0415 - a command opens one of these

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
    from sandbox.workspaces.client import open_workspace_client  # noqa: PLC0415 - a command opens one of these

    return open_workspace_client(
        settings.workspaces,
        home=settings.home,
        nsjail=settings.nsjail,
        artifacts_mb=settings.artifacts_mb,
        rooms=house(),
        variables=settings.environment,
    )


def open_toolbox(
    settings: Settings, workspaces: "WorkspaceClient | None" = None
) -> AbstractAsyncContextManager["Toolbox"]:
    """Open the toolbox that the settings name."""
    from sandbox.isolation.command_jail import CommandJail  # noqa: PLC0415 - the same
    from toolbox.toolbox import open_toolbox  # noqa: PLC0415 - a command opens one of these

    return open_toolbox(
        settings.toolbox,
        environment=settings.environment,
        home=settings.home,
        confinement=CommandJail(nsjail=settings.nsjail, home=settings.home, image=settings.image),
        workspaces=workspaces,
        optional=not settings.names_toolbox,
    )
