"""Fill a mailbox with believable customers, invoices and messages."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import aiosqlite

from examples.mailbox.database import SQL, Database

_TOWNS = ("Alder", "Brook", "Cedar", "Dunmore", "Easton", "Fairway", "Glen", "Harbour", "Isle", "Juniper", "Kestrel")
_TRADES = (
    "Joinery",
    "Catering",
    "Printworks",
    "Florists",
    "Logistics",
    "Dental",
    "Cycles",
    "Bakery",
    "Optics",
    "Sails",
)
_EDGES = ((60, 0), (61, 0), (60, 0), (95, 1), (130, 0), (-14, 0), (0, 0))
"""Days overdue and paid, for the first invoices, so that both sides of 60 days always exist."""


def _customers(dice: random.Random, count: int) -> Iterator[dict[str, Any]]:
    names = [f"{town} {trade}" for town, trade in product(_TOWNS, _TRADES)]
    dice.shuffle(names)
    for number in range(1, count + 1):
        again, index = divmod(number - 1, len(names))
        name = names[index] + (f" {again + 1}" if again else "")
        yield {"id": number, "name": name, "email": f"accounts@{name.lower().replace(' ', '-')}.example"}


def _invoices(dice: random.Random, customers: int, count: int, today: date) -> Iterator[dict[str, Any]]:
    for index in range(count):
        overdue, paid = dice.randint(-30, 150), int(dice.random() < 0.6)
        if index < len(_EDGES):
            overdue, paid = _EDGES[index]
        yield {
            "number": f"INV-{1001 + index}",
            "customer_id": dice.randint(1, customers),
            "amount_cents": dice.randint(4_000, 980_000),
            "due_date": (today - timedelta(days=overdue)).isoformat(),
            "paid": paid,
        }


def _messages(customers: list[dict[str, Any]], today: date) -> Iterator[dict[str, Any]]:
    subjects = (
        ("Question about your last invoice", "Could you send us the purchase order number again? Thank you."),
        ("Payment is on its way", "Our bank run is on Friday; please bear with us."),
        ("New delivery address", "From next month please deliver to our new yard by the river."),
        ("Out of office", "The accounts office is closed until Monday."),
    )
    for age, (customer, (subject, body)) in enumerate(zip(customers, subjects, strict=False), start=1):
        at = (today - timedelta(days=age)).isoformat() + "T09:30:00.000+00:00"
        yield {"sender": customer["email"], "subject": subject, "body": body, "received_at": at}


async def _fill(connection: aiosqlite.Connection, random_seed: int, customers: int, invoices: int, today: date) -> None:
    # Not for secrets: the same seed must give the same mailbox.
    dice = random.Random(random_seed)
    people = list(_customers(dice, customers))
    await connection.executemany(SQL["add_customer"], people)
    if people:
        await connection.executemany(SQL["add_invoice"], list(_invoices(dice, customers, invoices, today)))
    await connection.executemany(SQL["add_message"], list(_messages(people, today)))


async def seed(
    path: str | Path, random_seed: int = 7, customers: int = 12, invoices: int = 40, today: date | None = None
) -> None:
    """Create the mailbox and fill it if it is empty. The same arguments give the same rows."""
    day = today or datetime.now(UTC).date()
    database = Database(path)
    await database.create()
    async with database.open() as connection:
        await connection.execute(SQL["begin"])
        counted = list(await connection.execute_fetchall(SQL["count_seeded"]))
        if counted[0]["seeded"] == 0:
            await _fill(connection, random_seed, customers, invoices, day)
        await connection.commit()
