"""What the host of workspaces is told when it starts."""

from pathlib import Path

from backstay.noun import Noun


class WorkspaceSettings(Noun):
    """Say where workspaces are and how much one call may write."""

    home: Path
    workspaces: Path
    nsjail: Path | None = None
    artifacts_mb: int = 200
