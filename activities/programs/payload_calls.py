"""What the sandbox role asks the runs role for where payloads are in no folder: it has no access to where they are.

Each entry is an activity that belongs to no workflow: the sandbox role starts it on the queue of the runs role.
"""

from typing import Literal

from pydantic import ConfigDict
from temporalio import activity

from backstay.frozen import Message
from backstay.requests import OfRun

MOST_BYTES = 1 << 20
"""What one request or answer carries; Temporal refuses more than 2 MB, and these bytes travel as Base64."""


class PayloadPart(Message):
    """Carry a payload that may be shown, or a part of it."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    name: str
    """Its ref."""
    size: int
    """Bytes of the whole payload."""
    offset: int = 0
    data: bytes


class DescribeStore(OfRun):
    """Ask which store the runs role uses, before there is any run."""


class StoreDescription(Message):
    """Say which store the runs role uses, and where programs find its payloads."""

    store: str
    """The store's id."""
    payloads: Literal["files", "database"] = "files"
    """In a folder, or by asking the runs role; where that has them, is none of their business."""


class ReadPayloads(OfRun):
    """Ask for payloads of a run, or of the runs that it follows."""

    names: tuple[str, ...]
    offset: int = 0
    """How much of the first one was read already, in bytes."""


class PayloadsAnswer(Message):
    """Answer with as many payloads as there is room for, in their order; the last one may be a part.

    The values that are read next after one of them come along, as long as there is room.
    """

    parts: tuple[PayloadPart, ...] = ()
    absent: tuple[str, ...] = ()
    """Which of them the store does not have."""


class KeepPayloads(OfRun):
    """Keep payloads, or the next part of one."""

    parts: tuple[PayloadPart, ...]


@activity.defn
async def describe_store(ask: DescribeStore) -> StoreDescription:
    """Say which store the runs role uses."""
    raise NotImplementedError


@activity.defn
async def read_payloads(ask: ReadPayloads) -> PayloadsAnswer:
    """Return payloads of a run that may be shown."""
    raise NotImplementedError


@activity.defn
async def keep_payloads(ask: KeepPayloads) -> int:
    """Keep payloads of a run that may be shown; return how many are whole now."""
    raise NotImplementedError
