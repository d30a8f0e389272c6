"""What an attempt is about to send."""

from backstay.noun import Noun


class Intent(Noun):
    """Describe one send of one effect, before it is sent."""

    effect_id: str
    """`<run>/<n>`, and `<run>/<n>/undo` for its compensation."""
    run: str
    n: int
    undo: bool = False
    """Whether this is the compensation of effect n."""
    tool: str
    args_digest: str
    step: int = 0
    send: int = 1
    lease: float
    """Until when, in unix time, this attempt may still be sending."""
    user_id: str
    arguments_sealed: str | None = None
    """Ref of the sealed arguments as they are sent; a check or an undo by id needs them."""
