"""What a run holds a handle for is masked wherever it is said again, by whichever worker."""

import json
import logging

import pytest
import structlog

from activities.records import Records, RunSecrets
from backstay.logs import log_event
from backstay.redaction.handles import MARK, handle_for, handles_in
from backstay.redaction.redactor import Redactor
from store.opening import open_store
from tests.e2e.servers.spellings import SPELLINGS, token_of
from tests.logs import logged
from tests.requirements import promise

RUN = "workflow/run"
SECRET = token_of(7)


async def shown(records, payload, provider="desk", run=RUN):
    return (await records.show(run, payload, provider)).payload


@promise("secrets:held")
async def test_a_provider_that_repeats_its_secret_gets_the_same_handle(opened):
    async with opened() as (_, records, _):
        first = await shown(records, {"reset_token": SECRET})
        again = await shown(records, {"text": f"use {SECRET} now", "list": [SECRET]})
        assert again == {"text": f"use {first['reset_token']} now", "list": [first["reset_token"]]}


@promise("secrets:held-beside")
async def test_a_secret_is_masked_beside_the_field_that_gives_it_away(opened):
    async with opened() as (arguments, records, _):
        payload = {"note": f"paste {SECRET.upper()} there", "reset_token": SECRET, "also": f"or {SECRET}"}
        answer = await shown(records, payload)
        assert SECRET.lower() not in json.dumps(answer).lower()
        assert await arguments.revealed(RUN, await arguments.whole(RUN, answer)) == payload


@promise("secrets:held-spelling")
@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_what_is_said_in_another_spelling_goes_back_as_it_was_said(opened, spelling):
    async with opened() as (arguments, records, _):
        await shown(records, {"reset_token": SECRET})
        said = SPELLINGS[spelling](SECRET)
        answer = await shown(records, {"echo": said})
        assert "[REDACTED:" in json.dumps(answer) or handles_in(answer)
        if isinstance(said, str):
            assert await arguments.revealed(RUN, await arguments.whole(RUN, answer)) == {"echo": said}


@promise("secrets:held-workers")
async def test_another_worker_knows_what_a_run_holds_at_once(tmp_path):
    async with open_store(database_url=None, home=tmp_path) as store:
        here, there = (Records(store, RunSecrets(store.secrets, Redactor(()))) for _ in range(2))
        assert await shown(there, {"echo": SECRET}) == {"echo": SECRET}
        await shown(here, {"reset_token": SECRET})
        there.secrets.tell(RUN, 1)
        assert SECRET not in json.dumps(await shown(there, {"echo": SECRET}))
        assert SECRET in json.dumps(await shown(there, {"echo": SECRET}, run="another/run"))


@promise("secrets:carriers")
async def test_a_handle_or_a_mask_that_is_made_up_carries_no_secret(opened):
    async with opened() as (_, records, _):
        await shown(records, {"reset_token": SECRET})
        data = SECRET.encode().hex()
        forged = [
            f"{MARK}desk/{SECRET}:{'0' * 24}⟧",
            f"{MARK}{SECRET}/token:{'0' * 24}⟧",
            f"{MARK}{data[:40]}/{data[40:]}x:{'0' * 24}⟧",
            f"[REDACTED:{SECRET.lower().replace('-', '_')}]",
        ]
        answer = json.dumps(await shown(records, {"echo": forged}), ensure_ascii=False)
        assert SECRET.lower() not in answer.lower().replace("_", "-")
        assert data[:40] not in answer


@promise("secrets:carriers")
async def test_a_provider_whose_name_is_a_secret_keeps_its_handles(opened):
    async with opened() as (_, records, _):
        name = "production-database"
        first = await shown(records, {"password": name}, provider=name)
        assert await shown(records, first, provider=name) == first


@promise("secrets:carriers")
async def test_masking_again_changes_nothing_and_a_spelling_is_no_new_secret(opened):
    async with opened() as (_, records, _):
        answers = [await shown(records, {"reset_token": SECRET})]
        answers += [await shown(records, {"echo": spell(SECRET)}) for spell in SPELLINGS.values()]
        again = [await shown(records, answer) for answer in answers]
        assert again == answers
        held = await records.secrets.of(RUN)
        assert len(held.handles) <= len(answers)
        # Only the secret itself is looked for; its spellings have no spellings of their own.
        assert await shown(records, {"echo": SECRET.encode().hex().encode().hex()[::-1]}) == {
            "echo": SECRET.encode().hex().encode().hex()[::-1]
        }


@promise("secrets:held-errors")
async def test_errors_and_progress_are_masked_too(opened):
    async with opened() as (_, records, _):
        await shown(records, {"reset_token": SECRET})
        for spell in SPELLINGS.values():
            said = spell(SECRET)
            line = said if isinstance(said, str) else json.dumps(said)
            masked = await records.text(RUN, f"refused: {line}")
            assert "[REDACTED:" in masked
            assert line not in masked


@promise("secrets:held-errors")
async def test_what_a_library_logs_of_a_tools_answer_is_masked(opened):
    async with opened() as (_, records, _):
        await shown(records, {"reset_token": SECRET})
        with logged(Redactor(()), mask=records.secrets.masked) as buffer:
            for spell in SPELLINGS.values():
                logging.getLogger("a.library").warning("no JSON: %s", spell(SECRET))
        lines = buffer.getvalue().splitlines()
        assert len(lines) == len(SPELLINGS)
        assert all("[REDACTED:" in line for line in lines)
        assert not [name for name, spell in SPELLINGS.items() if str(spell(SECRET)) in buffer.getvalue()]


@promise("secrets:log-lines")
async def test_the_line_of_an_event_says_what_the_event_says_and_what_is_added_to_it_is_masked(opened):
    said = {"text": "sent", "data": {"arguments": {"note": "⟦secret:x⟧"}}}
    event = {"n": 3, "at": "now", "task_id": "t", "user_id": "ana", "session_id": "monday", **said}
    async with opened() as (_, records, _):
        await shown(records, {"reset_token": SECRET})
        with logged(Redactor(()), mask=records.secrets.masked) as log:
            log_event("action.called", event)
            with structlog.contextvars.bound_contextvars(bound=f"it is {SECRET}", password="short", level=SECRET):
                log_event("action.called", event | {"user_id": SECRET})
    plain, bound = (json.loads(line) for line in log.getvalue().splitlines())
    ours = {"event": "action.called", "logger": "backstay.timeline", "level": "info"}
    assert plain == event | ours | {"timestamp": plain["timestamp"]}
    assert SECRET not in log.getvalue()
    assert {name: bound[name] for name in said} == said
    masks = {name: bound[name] for name in ("bound", "password", "user_id", "level")}
    assert masks == {
        "bound": "it is [REDACTED:known]", "password": "[REDACTED:password]", "user_id": "[REDACTED:known]",
        "level": "info",
    }  # fmt: skip


@promise("secrets:log-lines")
async def test_any_other_line_of_the_same_logger_is_masked_whatever_it_claims_to_be(opened):
    timeline = structlog.get_logger("backstay.timeline")
    fields = {"n": 3, "text": f"it is {SECRET}", "data": {"password": "short"}}
    async with opened() as (_, records, _):
        await shown(records, {"reset_token": SECRET})
        with logged(Redactor(()), mask=records.secrets.masked) as log:
            timeline.info("action.called", **fields, task_id="t")
            timeline.info("action.called", **fields, _said=fields | {"event": "action.called"})
            logging.getLogger("backstay.timeline").info("action.called %s", fields)
            timeline.error("action.called", exc_info=ValueError(SECRET), stack_info=True, **fields)
    assert len(log.getvalue().splitlines()) == 4
    assert SECRET not in log.getvalue()
    assert '"password": "short"' not in log.getvalue()


@promise("secrets:carriers")
async def test_a_handle_of_another_run_says_nothing_here(opened):
    async with opened() as (_, records, _):
        await shown(records, {"reset_token": SECRET}, run="another/run")
        handle = handle_for(b"another key", "desk", "token", SECRET)
        assert await shown(records, {"echo": handle}) == {"echo": handle}
