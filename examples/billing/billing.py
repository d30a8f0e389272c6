"""Tools in Python over a folder of charges: a charge is made once, can be looked for, and can be undone."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from backstay import Retry, ToolContext, ToolError, tool

BOOK = Path(__file__).with_name("charges")
LARGE = 100_000


class Charge(BaseModel):
    """One charge, as it lies in the book."""

    number: str
    customer: str
    cents: int
    signed: str


def slip(number: str) -> Path:
    """Return where a charge lies."""
    return BOOK / f"{number}.json"


def number_of(effect_id: str) -> str:
    """Return the number of the charge that an effect makes; another try of it has the same."""
    return hashlib.sha256(effect_id.encode()).hexdigest()[:12]


def void(result: dict[str, Any], arguments: dict[str, Any], context: ToolContext) -> dict[str, str]:
    """Take a charge back."""
    slip(result["number"]).unlink(missing_ok=True)
    return {"voided": result["number"]}


def find(result: None, arguments: dict[str, Any], context: ToolContext) -> Any:
    """Return the charge if it was made, else False."""
    place = slip(number_of(context.effect_id))
    return json.loads(place.read_text(encoding="utf-8")) if place.exists() else False


@tool(safety="write_safe", undo=void, verify=find, transactional=True)
async def charge(
    customer: Annotated[str, Field(min_length=1, description="an address")],
    cents: Annotated[int, Field(ge=1)],
    context: ToolContext,
) -> Charge:
    """Charge a customer. A person is asked about a large charge."""
    if "@" not in customer:
        raise Retry("give the customer's address, such as ana@example.com")
    if cents > LARGE and not await context.ask(f"Charge {customer} {cents / 100:.2f}?", bool):
        raise ToolError("the charge is too large")
    signed = hashlib.sha256(context.secret("signature").encode()).hexdigest()[:8]
    made = Charge(number=number_of(context.effect_id), customer=customer, cents=cents, signed=signed)
    BOOK.mkdir(exist_ok=True)
    slip(made.number).write_text(made.model_dump_json(), encoding="utf-8")
    return made


@tool(safety="read_only")
def total(customer: str) -> int:
    """Add up what a customer was charged, in cents."""
    charges = [Charge.model_validate_json(place.read_bytes()) for place in sorted(BOOK.glob("*.json"))]
    return sum(found.cents for found in charges if found.customer == customer)
