"""The tool lists of real servers, queries for them, and tools made up to fill a catalog."""

import gzip
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any, NamedTuple

from toolbox.catalog.definition import Definition, define
from toolbox.providers.declaration import Declaration
from toolbox.providers.listing import ListedTool

DATA = Path(__file__).with_name("data")
TOOLS_PER_PROVIDER = 50
VERBS = {
    "list": "List {noun}s, filtered by state and sorted by date; returns a page and a cursor.",
    "get": "Get one {noun} by its id with all its fields.",
    "create": "Create a new {noun}; returns its id.",
    "update": "Update the fields of an existing {noun}; fields left out are kept.",
    "delete": "Delete a {noun} for good. This cannot be undone.",
    "search": "Search {noun}s by a text in any of their fields.",
    "archive": "Archive a {noun}; it can be restored later.",
    "export": "Export {noun}s as a file in the given format.",
    "assign": "Assign a {noun} to a person or a team.",
    "approve": "Approve a {noun} that waits for a decision.",
}
NOUNS = [
    "invoice",
    "shipment",
    "payroll",
    "patient",
    "vehicle",
    "warehouse",
    "lease",
    "harvest",
    "claim",
    "policy",
    "candidate",
    "course",
    "exam",
    "grade",
    "parcel",
    "container",
    "booking",
    "passenger",
    "flight",
    "cabin",
    "recipe",
    "menu",
    "ingredient",
    "supplier",
    "tender",
    "bid",
    "asset",
    "meter",
    "turbine",
    "sensor",
    "valve",
    "pump",
    "inspection",
    "permit",
    "parcel_route",
    "donation",
    "grant",
    "pledge",
    "member",
    "ticket_sale",
    "seat",
    "venue",
    "artist",
    "royalty",
    "prescription",
    "allergy",
    "appointment",
    "ward",
    "bed",
    "vaccine",
    "sample",
    "assay",
    "batch",
]
ADJECTIVES = [
    "north",
    "south",
    "east",
    "west",
    "prime",
    "blue",
    "green",
    "swift",
    "clear",
    "bright",
    "open",
    "solid",
    "true",
    "first",
    "next",
]
BRANCHES = [
    "freight",
    "clinic",
    "campus",
    "farm",
    "hotel",
    "museum",
    "utility",
    "insurance",
    "theatre",
    "foundry",
    "laboratory",
    "bakery",
    "harbour",
]
PARAMETERS = {
    "id": "identifier",
    "state": "only those in this state",
    "limit": "how many at most",
    "format": "csv, json or pdf",
}


class Asked(NamedTuple):
    tool: str
    short: str
    sentence: str


def real() -> dict[str, Any]:
    return json.loads(gzip.decompress((DATA / "tool_lists.json.gz").read_bytes()))


def definition(provider: str, name: str, description: str, parameters: dict[str, str]) -> Definition:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    listed = ListedTool(name=name, description=description, input_schema={"type": "object", "properties": properties})
    return define(provider, listed, Declaration(), trusted=False, serial=False)


def real_definitions() -> list[Definition]:
    return [
        definition(server, tool["name"], tool["description"], tool["parameters"])
        for server, found in real().items()
        for tool in found["tools"]
    ]


def filled(count: int) -> list[Definition]:
    """Return the real tools, filled up with made-up ones to this number."""
    tools = real_definitions()
    providers = (f"{a}-{b}" for b, a in itertools.product(BRANCHES, ADJECTIVES))
    kinds = itertools.cycle(itertools.product(NOUNS, VERBS))
    while len(tools) < count:
        provider = next(providers)
        for noun, verb in itertools.islice(kinds, min(TOOLS_PER_PROVIDER, count - len(tools))):
            text = VERBS[verb].format(noun=noun.replace("_", " "))
            tools.append(definition(provider, f"{verb}_{noun}", f"{text} Part of {provider}.", PARAMETERS))
    return tools


def queries() -> dict[str, list[Asked]]:
    """Return the queries by the half they belong to; a server's queries stay together."""
    lines = (DATA / "tool_queries.txt").read_text(encoding="utf-8").splitlines()
    every = [Asked(*line.split(" | ")) for line in lines]
    servers = sorted(
        {query.tool.partition(".")[0] for query in every}, key=lambda name: hashlib.sha256(name.encode()).hexdigest()
    )
    tuning = set(servers[::2])
    return {
        "tuning": [query for query in every if query.tool.partition(".")[0] in tuning],
        "held out": [query for query in every if query.tool.partition(".")[0] not in tuning],
    }
