"""What an attempt may do after it said what it is about to send."""

from typing import Literal

from pydantic import Field

from backstay.noun import Noun
from store.effect_row import EffectRow

Go = Literal["go", "recorded", "wait", "unknown", "conflict"]
"""go: send now, with this token. recorded: it was settled; do not send. wait: another attempt may be sending until
`row.lease`. unknown: it may have been sent; do not send. conflict: the row is about another call; do not send."""


class Begun(Noun):
    """Answer an Intent."""

    kind: Go
    token: str = Field(default="", repr=False)
    """What `settle` asks for; empty unless `go`."""
    row: EffectRow
    """The row as it stands now."""
