"""What the sandbox role works with: no tools, no model, no database and no secrets."""

from dataclasses import dataclass

from backstay.redaction import Redactor
from sandbox.sandbox import Sandbox
from store.shown_blobs import ShownBlobs


@dataclass(frozen=True)
class Confined:
    """Hold the open resources of one sandbox worker."""

    sandbox: Sandbox
    blobs: ShownBlobs
    redactor: Redactor
    queue: str
    """This worker's own queue, on which the programs it keeps go on."""
    transient_s: float
    sample_every: int = 20
    """One in so many programs that were never fed is run again from its journal; 0: none."""
