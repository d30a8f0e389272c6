"""Open the workspaces of one machine: find nsjail, build the image, prove that jails confine."""

import asyncio

from sandbox.cgroups import find_cgroups
from sandbox.image import build_image
from sandbox.isolation import prove_workspace
from sandbox.limits import shell_limits
from sandbox.nsjail import Nsjail
from sandbox.snapshots import Snapshots
from sandbox.workspace_jails import WorkspaceJails
from sandbox.workspace_owner import prepare
from sandbox.workspace_settings import WorkspaceSettings
from sandbox.workspaces import Workspaces


async def open_workspaces(settings: WorkspaceSettings) -> Workspaces:
    """Return the workspaces, once every property of their jails is proven here.

    Raises IsolationUnavailable, and ImageMissing when the image cannot be built.
    """
    home = settings.home.absolute()
    nsjail = Nsjail.find(None if settings.nsjail is None else str(settings.nsjail))
    image = await asyncio.to_thread(build_image, "shell", home / "images")
    cgroups = await asyncio.to_thread(find_cgroups)
    folder, state = home / "jails", home / "workspace-state"
    # Where workspaces are is where it must be possible to work.
    trial = settings.workspaces.absolute() / ".trial"
    trial.mkdir(parents=True, exist_ok=True)
    # What commands said is recorded there.
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    await asyncio.to_thread(prepare, trial)
    limits = shell_limits()
    (await prove_workspace(nsjail, image, folder, trial, limits=limits, cgroups=cgroups)).demand()
    jails = WorkspaceJails(
        nsjail, image, folder=folder, cgroups=cgroups, written_mb=settings.artifacts_mb, limits=limits
    )
    return Workspaces(
        settings.workspaces.absolute(), state, jails, lambda workspace: Snapshots(home / "snapshots" / workspace.key)
    )
