"""Hold the record of a run against what people decided: who, what, about which request, and with which change."""

import json
from dataclasses import dataclass, field
from typing import Any

import opening
from backstay.policies.accepted import HOLDS
from backstay.task.event import Event
from tests.cli.commands import forked
from tests.e2e.approvals.doors.decoding import BAR, plain
from tests.e2e.approvals.doors.world import World


@dataclass(frozen=True)
class Said:
    """One decision, as the record must have it."""

    by: str
    request: str
    verdict: str
    calls: dict[int, str]
    changed: dict[int, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    """By call: the arguments that differ, and the digest of all of them."""
    dry_run: bool = False
    left_out: tuple[int, ...] = ()
    toggles: dict[str, Any] = field(default_factory=dict)
    remember: str = ""


async def events_of(world: World, handle: Any) -> list[Event]:
    """Return all events of a run; its Result holds the last ones only."""
    async with opening.open_store(world.engine.settings) as store:
        row = await store.runs.get(handle.id)
        assert row is not None
        return list(await store.events.of_run(row.run))


async def check_record(world: World, handle: Any, said: list[Said]) -> None:
    """Assert that events and the store name who decided what, with the change."""
    told = [event.data for event in await events_of(world, handle) if event.name == "approval.decided"]
    async with opening.open_store(world.engine.settings) as store:
        row = await store.runs.get(handle.id)
        assert row is not None
        kept = list(await store.decisions.of_run(row.run))
    assert [(data["by"], data["verdict"], data["verified"]) for data in told] == [
        (each.by, each.verdict, True) for each in said
    ]
    assert len(kept) == len(said), kept
    for decision, each in zip(kept, said, strict=True):
        _check(decision, each)


def _check(decision: Any, said: Said) -> None:
    assert (decision.by, decision.verdict, decision.request_id) == (said.by, said.verdict, said.request)
    assert decision.verified
    assert decision.remember == said.remember, decision
    assert decision.calls == said.calls, decision
    assert decision.left_out == said.left_out, decision
    assert (decision.option == "dry_run_only") == said.dry_run
    toggles = {} if decision.toggles is None else decision.toggles.model_dump(exclude_none=True)
    assert toggles == said.toggles, decision
    assert {each.index for each in decision.changed} == said.changed.keys(), decision
    for each in decision.changed:
        names, digest = said.changed[each.index]
        assert digest in {"", each.args_digest}, decision
        heads = [line[2:] for line in each.lines if not line.startswith(BAR)]
        for name in names:
            assert any(_begins(head, name) for head in heads), (name, each.lines)
        for head in heads:
            assert any(_begins(head, name) for name in names) or "clipped" in head, (names, head)


def _begins(head: str, name: str) -> bool:
    """Return whether a line of a change is about an argument, or about something in it."""
    if head.startswith('"'):
        said, end = json.JSONDecoder().raw_decode(head)
        return plain(said) == name and head[end] in ":."
    return plain(head).startswith((f"{name}:", f"{name}."))


async def check_export(world: World, handle: Any, said: list[Said]) -> None:
    """Assert that the messages of a run, as they are exported, name who had something sent with other arguments."""
    changed = {name for each in said for names, _ in each.changed.values() for name in names}
    if said[-1].verdict == "reject":
        return
    found: set[str] = set()
    async for message in world.backstay.run(handle.id).messages():
        told = message.get("decided_by_people", []) if message["role"] == "tool" else []
        for each in told if isinstance(told, list) else [told]:
            assert any(person.by in each["by"] for person in said), each
            found |= {
                plain(name) for name in (*each.get("sent_with_other_arguments", {}), *each.get("sent_without", ()))
            }
    assert found <= changed, (found, changed)


async def check_show(world: World, handle: Any, said: list[Said]) -> None:
    """Assert that `backstay show` names every decision and what it changed."""
    done = await forked(world.nursery, "show", handle.id, environment=world.environment(), folder=world.folder)
    assert done.code == 0, done.err
    for each in said:
        _, told, how = done.out.partition(f"decide {each.request} {each.verdict} by {each.by}")
        assert told, done.out
        if each.remember:
            assert f"to be remembered for {HOLDS[each.remember]}" in how, done.out
        for index, (_, digest) in each.changed.items():
            assert f"changed call {index} (digest {digest}" in done.out, done.out
