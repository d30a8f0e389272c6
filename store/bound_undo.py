"""How an applied effect would be taken back."""

from backstay.noun import Noun


class BoundUndo(Noun):
    """Name the compensation with its arguments already rendered and sealed."""

    tool: str
    sealed_ref: str
    """Ref of the sealed blob with the arguments."""
    shown: str
    """What would be called, for people."""
