"""Triggers: what is signed starts one run; what is forged, replayed, too large or too often starts none."""

import asyncio
import json
import time

import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

import opening
from backstay.client.schedules import Schedules
from backstay.errors import StoreUnavailable
from tests.e2e.sessions.test_continuing import continued
from tests.engine import ended, pending, update
from tests.requirements import promise
from tests.schedules.office import ANA, open_office, some
from workflows.context import carrying

FREE = {"to": "a@free.example", "subject": "x"}
STRICT = "provenance: strict\ndefault: {read_only: allow, write_safe: allow, restricted_write: allow}\n"


@pytest.fixture
async def name(office):
    made = some("tell")
    await office.trigger(made, max_bytes=200, per_minute=5)
    return made


async def counted(office, name):
    return len(await office.store.starts.newest("trigger", name, 100))


@promise("schedules:trigger")
async def test_a_signed_request_starts_a_definition_with_its_body_as_the_input(office, name):
    # What others send is data: a text in it that looks like a reference of a plan is none.
    subject = "${steps.0.result.to} $${x} the fair"
    answer = await office.send(name, FREE | {"subject": subject}, "e1")
    assert answer.status_code == 202
    told = answer.json()
    assert told["id"] == "e1"
    row = await office.until(name, lambda row: row.last[0].state == "ended")
    assert (row.last[0].workflow_id, row.last[0].told) == (told["workflow_id"], "completed")
    sent = office.engine.mailbox.rows(
        "SELECT recipient, subject FROM sent WHERE effect_id LIKE ?", f"{told['workflow_id']}/%"
    )
    assert sent == [("a@free.example", subject)]
    kept = await office.store.runs.get(told["workflow_id"])
    assert (kept.opened["started_by"], kept.metadata["trigger"]) == (ANA, name)


@promise("schedules:trigger-once")
async def test_the_same_id_is_told_of_the_same_run_also_when_it_comes_twice_at_once(office, name):
    answers = await asyncio.gather(*(office.send(name, FREE, "same") for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 202]
    later = await office.send(name, FREE | {"subject": "another"}, "same", at=time.time() - 5)
    assert len({answer.json()["workflow_id"] for answer in [*answers, later]}) == 1
    await office.until(name, lambda row: row.last[0].state == "ended")
    assert (await counted(office, name), (await office.listed(name)).runs) == (1, 1)
    assert (await office.send(name, FREE, "same")).json()["state"] == "ended"


@promise("schedules:trigger-started-later")
async def test_an_event_whose_page_died_before_it_started_the_run_is_started_by_the_next_delivery(
    office, name, monkeypatch
):
    with monkeypatch.context() as dead:

        async def dies(*_):
            raise ConnectionError

        dead.setattr(Schedules, "start", dies)
        assert (await office.send(name, FREE, "e1")).status_code == 500
    assert (await office.listed(name)).last[0].state == "accepted"
    assert (await office.send(name, FREE, "e1")).status_code == 200
    await office.until(name, lambda row: row.last[0].told == "completed")
    assert await counted(office, name) == 1


@promise("schedules:trigger-attacks")
async def test_what_is_forged_stale_or_replayed_is_refused_and_leaves_nothing(office, name):
    other = await office.trigger(some("other"))
    signed = office.request(name, FREE, "e1")
    assert (await office.send(name, FREE, "e1")).status_code == 202
    bare = {"backstay-signature": "", "backstay-timestamp": ""}
    cases = {
        "another key": await office.send(name, FREE, key=other),
        "no key": await office.send(name, FREE, **bare),
        "an old one": await office.send(name, FREE, at=time.time() - 400),
        "one of tomorrow": await office.send(name, FREE, at=time.time() + 400),
        "an unknown trigger": await office.send(some("none"), FREE, key=office.keys[name]),
        "a large one": await office.send(name, FREE | {"subject": "x" * 1000}, key=other),
        "a large one for an unknown trigger": await office.send(some("none"), FREE | {"subject": "x" * 1000}),
        "no time": await office.send(name, FREE, **{"backstay-timestamp": "9" * 40}),
    }
    assert {case: answer.status_code for case, answer in cases.items()} == dict.fromkeys(cases, 403)
    # Nobody learns which names there are.
    assert len({answer.text for answer in cases.values()}) == 1
    async with office.page.stranger() as client:
        changed = signed | {"content": json.dumps(FREE | {"to": "thief@free.example"}).encode()}
        assert (await client.post(**changed)).status_code == 403
        replayed = signed | {"headers": signed["headers"] | {"backstay-id": "e2"}}
        answer = await client.post(**replayed)
        assert (answer.status_code, answer.json()["error"]["type"]) == (409, "Replayed")
        assert (await client.get(signed["url"])).status_code == 405
    assert await counted(office, name) == 1


async def started_and_stopped(settings, client):
    """Do with the store what a worker does before it takes work."""
    async with opening.open_fit_store(settings, client):
        pass


@promise("schedules:trigger-key-rotated")
async def test_a_trigger_is_believed_after_the_encryption_keys_were_rotated(temporal, tmp_path):
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    async with open_office(temporal, tmp_path, encryption_keys=[old]) as office:
        await started_and_stopped(office.engine.settings, temporal)
        key = await office.trigger(name := some("rotated"))
        assert (await office.send(name, FREE, "e1")).status_code == 202
        await office.until(name, lambda row: row.last[0].state == "ended")
        rotating = office.engine.settings.model_copy(update={"encryption_keys": (SecretStr(new), SecretStr(old))})
    await started_and_stopped(rotating, temporal)
    async with open_office(temporal, tmp_path, encryption_keys=[new]) as office:
        office.keys[name] = key
        assert (await office.send(name, FREE, "e2")).status_code == 202
        await office.until(name, lambda row: row.last[0].told == "completed")


@promise("schedules:trigger-attacks")
async def test_a_trigger_whose_key_nobody_can_read_answers_as_one_that_is_not_there(temporal, tmp_path):
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    async with open_office(temporal, tmp_path, encryption_keys=[old]) as office:
        key = await office.trigger(name := some("lost"))
    async with open_office(temporal, tmp_path, encryption_keys=[new]) as office:
        answers = [await office.send(name, FREE, key="x"), await office.send(some("none"), FREE, key="x")]
        answers.append(await office.send(name, FREE, key=key))
        assert [answer.status_code for answer in answers] == [403] * 3
        assert len({answer.text for answer in answers}) == 1
        assert "BACKSTAY" not in answers[0].text


@promise("schedules:trigger-attacks")
async def test_where_the_store_does_not_answer_nobody_unsigned_learns_why(office, name, monkeypatch):
    with monkeypatch.context() as down:

        async def fails(_):
            raise StoreUnavailable("store: BACKSTAY_DATABASE_URL postgresql://db.internal does not answer")

        down.setattr(office.page.page.store.standing, "trigger", fails, raising=False)
        answer = await office.send(name, FREE, key="x")
    assert (answer.status_code, "BACKSTAY" in answer.text, "internal" in answer.text) == (503, False, False)


@promise("schedules:trigger-bounds")
async def test_what_is_too_large_odd_or_too_often_is_refused(office, name):
    large = await office.send(name, FREE | {"subject": "x" * 200})
    assert (large.status_code, large.json()["error"]["type"]) == (413, "TooLarge")
    odd = [b"", b"[]", b"{", b'{"a": NaN}', b'{"a": 1, "a": 2}', b'"\\ud800"', b'{"a": "\\ud800"}', b"\xff", b"null"]
    assert {(await office.send(name, body)).status_code for body in odd} <= {400, 422}
    assert (await office.send(name, FREE, "x" * 201)).status_code == 422
    assert await counted(office, name) == 0
    flood = await asyncio.gather(*(office.send(name, FREE | {"subject": f"{n}"}) for n in range(30)))
    taken = [answer for answer in flood if answer.status_code == 202]
    late = [answer for answer in flood if answer.status_code == 429]
    assert (len(taken), len(late)) == (5, 25)
    assert late[0].headers["retry-after"] == "60"
    # A repeat of what was taken is answered all the same.
    assert await counted(office, name) == 5


@promise("schedules:trigger-faults")
async def test_what_is_wrong_with_a_request_is_named(office):
    await office.trigger(name := some("odd"), max_bytes=1000)
    bodies = {
        b"{": (400, "the body is not JSON; send an object in UTF-8"),
        b"[]": (400, "the body must be a JSON object"),
        b'{"a": 1, "a": 2}': (422, "a: duplicate key; keep one of them"),
        b'{"to": {"b": 1e999}}': (422, "to: holds a number that is none, or endless, or too long; give it as a string"),
        b'{"to": ' + b"9" * 500 + b"}": (
            422,
            "to: holds a number that is none, or endless, or too long; give it as a string",
        ),
        b'{"to": "\\ud800"}': (422, "to: holds half a character; give whole ones"),
    }
    for body, said in bodies.items():
        answer = await office.send(name, body)
        assert (answer.status_code, answer.json()["error"]["message"]) == said, body
    ids = {"x" * 201: "longer than 200 characters", "a\tb": "holds signs that cannot be shown"}
    for event, said in ids.items():
        answer = await office.send(name, FREE, event)
        assert (answer.status_code, answer.json()["error"]["message"].partition(";")[0]) == (
            422,
            f"backstay-id: {said}",
        )
    assert await counted(office, name) == 0


@promise("schedules:trigger-refused")
async def test_input_that_the_definition_does_not_take_starts_nothing_and_says_why(office, name):
    assert (await office.send(name, {"subject": "x"}, "e1")).status_code == 202
    row = await office.until(name, lambda row: row.last[0].state == "refused")
    assert "to" in row.last[0].told
    assert (await office.send(name, {"subject": "x"}, "e1")).json()["state"] == "refused"


@promise("schedules:trigger-words")
async def test_what_was_sent_counts_as_the_words_of_others_also_where_the_plan_names_it(temporal, tmp_path):
    async with open_office(temporal, tmp_path, policy=STRICT) as office:
        await office.trigger("strict")
        answer = (await office.send("strict", {"to": "thief@evil.example", "subject": "x"}, "e1")).json()
        handle = await office.asking(answer["workflow_id"])
        (request,) = await pending(handle)
        assert "which others write" in json.dumps(request)
        assert request["calls"][0]["sources"]["/to"][0]["content"] == "others"
        await update(handle, "decide", {"request_id": "r1", "verdict": "reject", "by": "bo", "stop": True})
        # The same plan with the author's own input goes on unasked.
        own = await office.engine.client.start_workflow(
            "RunTask",
            {"text": "tell", "input": {"to": "a@x.example"}, "plan": {"steps": [_send()]}},
            id=some("own"),
            task_queue=office.engine.settings.task_queue,
        )
        assert (await ended(own))["outcome"] == "completed"


@promise("schedules:trigger-words-kept")
async def test_what_was_sent_stays_the_words_of_others_in_a_later_execution_and_in_a_plan_that_a_person_changed(
    temporal, tmp_path, monkeypatch
):
    monkeypatch.setattr(carrying, "MOST_SIGNALS", 0)
    async with open_office(temporal, tmp_path, policy=STRICT) as office:
        await office.trigger("kept")
        sent = {"to": "thief@evil.example", "subject": "x"}
        answer = (await office.send("kept", sent, "e1")).json()
        handle = await office.asking(answer["workflow_id"])
        (first,) = await pending(handle)
        await continued(handle)
        (same,) = await pending(handle)
        assert (same["id"], office.engine.mailbox.sent()) == (first["id"], [])
        changes = {"0": {"verdict": "modify", "arguments": {"subject": "another"}}}
        await update(handle, "decide", {"request_id": same["id"], "verdict": "modify", "by": "bo", "calls": changes})
        (child,) = await pending(handle)
        assert (child["proposal"]["version"], office.engine.mailbox.sent()) == (2, [])
        sources = child["calls"][0]["sources"]
        assert (sources["/to"][0]["content"], sources["/subject"][0]["by"]) == ("others", "bo")
        await update(handle, "decide", {"request_id": child["id"], "verdict": "reject", "by": "bo", "stop": True})
        await ended(handle)
        assert office.engine.mailbox.sent() == []


def _send():
    return {"tool": "mail.send_email", "arguments": {"to": "${input.to}", "subject": "s", "body": "b"}}
