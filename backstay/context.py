"""What is added to the model's view of a run; the whole transcript lives in the store, history holds one ref."""

from typing import Literal

from backstay.noun import Noun


class ContextItem(Noun):
    """Add one thing to the context."""

    kind: Literal["answer", "note", "tools", "fact"]
    """answer: what a call of the model led to; note: what the engine tells the model; tools: hits that become visible;
    fact: a note that trimming never drops."""
    call_id: str | None = None
    """The model's own call id, for an answer or for the tools a search found."""
    ref: str | None = None
    """A stored result record, or the stored hits."""
    text: str | None = None
    """A short text instead of a ref."""
