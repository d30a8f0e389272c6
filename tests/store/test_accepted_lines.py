"""Lines in the store: kept once, counted per person, and bounded."""

import asyncio

import pytest

from backstay.errors import DecisionRefused
from backstay.policies.accepted import MOST_LINES, AcceptedLine
from store.opening import open_store
from tests.requirements import promise

ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"


def line(by=ANA, **fields):
    about = {"verdict": "allow", "scope": "always", "tool": "mail.send_email", "definition": "d", "by": by}
    return AcceptedLine(**{**about, **fields}).identified()


@promise("approvals:remember-quorum")
async def test_two_workers_that_count_two_people_at_once_let_a_line_hold_once(tmp_path, database_url):
    async with (
        open_store(database_url=database_url, home=tmp_path) as left,
        open_store(database_url=database_url, home=tmp_path) as right,
    ):
        rows = await asyncio.gather(
            left.accepted_lines.keep([line(ANA)], people=(ANA, BO), quorum=2, counts=True),
            right.accepted_lines.keep([line(BO)], people=(ANA, BO), quorum=2, counts=True),
        )
        held = await left.accepted_lines.holding("singleton", None)
    assert sorted(row.holds for (row,) in rows) == [False, True]
    assert [sorted(found.by.split(", ")) for found in held] == [[ANA, BO]]


@promise("approvals:remember-votes")
async def test_a_vote_counts_once_a_strangers_word_resets_none_and_a_lost_right_counts_no_more(tmp_path, database_url):
    async with open_store(database_url=database_url, home=tmp_path) as store:
        keep, more = store.accepted_lines.keep, {"people": (ANA, BO), "quorum": 2}
        for said, counts in ((ANA, True), (ANA, True), ("eve", False), ("eve", True), (BO, False)):
            (row,) = await keep([line(said)], counts=counts, **more)
            assert (row.holds, row.votes) == (False, (ANA,))
        (row,) = await keep([line(BO)], people=(BO, CY), quorum=2, counts=True)
        assert (row.holds, row.votes) == (False, (BO,))
        (row,) = await keep([line(CY)], people=(BO, CY), quorum=2, counts=True)
        assert (row.holds, row.votes) == (True, (BO, CY))
        (row,) = await keep([line("eve")])
        assert (row.holds, row.line.by) == (True, f"{BO}, {CY}")


@promise("approvals:remember-old-votes")
async def test_an_old_vote_makes_up_no_number_with_a_new_one(tmp_path, database_url):
    now = [1000.0]
    async with open_store(database_url=database_url, home=tmp_path, clock=lambda: now[0]) as store:

        async def keep(by, **more):
            (row,) = await store.accepted_lines.keep([line(by)], people=(ANA, BO, CY), quorum=2, counts=True, **more)
            return row.holds, row.votes

        assert await keep(ANA) == (False, (ANA,))
        now[0] += 24 * 3600 + 1
        assert await keep(BO) == (False, (BO,))
        now[0] += 61
        assert await keep(ANA, hold_s=60) == (False, (ANA,))
        (proposed,) = await store.accepted_lines.keep([line(BO)], people=(ANA, BO, CY), quorum=2)
        assert (proposed.holds, proposed.votes) == (False, (ANA,))
        now[0] += 60
        assert await keep(CY, hold_s=60) == (True, (ANA, CY))
        now[0] += 24 * 3600 + 1
        assert [found.by for found in await store.accepted_lines.holding("singleton", None)] == [f"{ANA}, {CY}"]


@promise("approvals:remember-handed-out")
async def test_only_the_lines_of_the_user_and_session_are_handed_out_and_only_in_time(tmp_path):
    now = [1000.0]
    async with open_store(database_url=None, home=tmp_path, clock=lambda: now[0]) as store:
        lines = [
            line(tool="a.always"),
            line(tool="a.other", user_id="other"),
            line(tool="a.session", scope="session", session_id="s", expires_at=1500.0),
            line(tool="a.never", verdict="deny"),
        ]
        await store.accepted_lines.keep(lines, people=(ANA,), counts=True)

        async def tools(session):
            return [found.tool for found in await store.accepted_lines.holding("singleton", session)]

        assert sorted(await tools(None)) == sorted(await tools("t")) == ["a.always", "a.never"]
        assert sorted(await tools("s")) == ["a.always", "a.never", "a.session"]
        now[0] = 1500.0
        assert sorted(await tools("s")) == ["a.always", "a.never"]
        await store.accepted_lines.keep([line(tool="a.always")])
        assert "a.session" not in [row.line.tool for row in await store.accepted_lines.every() if row.line]


@promise("approvals:remember-limit")
async def test_a_user_has_so_many_lines_and_no_more(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        many = [line(tool=f"a.tool_{n}") for n in range(MOST_LINES)]
        await store.accepted_lines.keep(many)
        await store.accepted_lines.keep([line(tool="a.more")])
        tools = {row.line.tool for row in await store.accepted_lines.every() if row.line}
        assert ("a.more" in tools, "a.tool_0" in tools, len(tools)) == (True, False, MOST_LINES)
        await store.accepted_lines.keep(
            [line(tool=f"a.tool_{n}", user_id="voted") for n in range(MOST_LINES)],
            people=(ANA, BO),
            quorum=2,
            counts=True,
        )
        with pytest.raises(DecisionRefused, match="200 lines of this user wait already"):
            await store.accepted_lines.keep([line(tool="a.more", user_id="voted")])
        await store.accepted_lines.keep(many, people=(ANA,), counts=True)
        with pytest.raises(DecisionRefused, match="200 lines of this user hold already"):
            await store.accepted_lines.keep([line(tool="a.more")], people=(ANA,), counts=True)
        await store.accepted_lines.keep([line(tool="a.more", user_id="other")], people=(ANA,), counts=True)
        waiting = line(tool="a.waits")
        await store.accepted_lines.keep([waiting])
        with pytest.raises(DecisionRefused, match="hold already"):
            await store.accepted_lines.accept(waiting.id, "olga")
        assert await store.accepted_lines.remove(many[0].id)
        assert not await store.accepted_lines.remove(many[0].id)
        assert many[0].id not in {row.id for row in await store.accepted_lines.every()}
        accepted = await store.accepted_lines.accept(waiting.id, "olga")
        assert (accepted.holds, accepted.line.by) == (True, "olga")
        assert await store.accepted_lines.accept("unknown", "olga") is None


@promise("approvals:remember-removed")
async def test_a_removed_line_does_not_come_back_with_the_decision_that_made_it_but_with_another(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        keep = store.accepted_lines.keep
        first = line(request="task r1")
        await keep([first], people=(ANA,), counts=True)
        await store.accepted_lines.remove(first.id)
        (again,) = await keep([first], people=(ANA,), counts=True)
        assert (again.holds, await store.accepted_lines.holding("singleton", None)) == (False, ())
        (anew,) = await keep([line(request="other r1")], people=(ANA,), counts=True)
        assert (anew.id, anew.holds) == (first.id, True)
