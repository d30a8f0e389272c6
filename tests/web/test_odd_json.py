"""What programs send is refused by the name of its field, whatever is in it; the page itself never fails."""

import json

import pytest
import pytest_asyncio

from tests.engine import Scripts, engine, pending
from tests.requirements import promise
from tests.sizes import spread
from tests.web.pages import ANA, behind_a_proxy, listed, mail, served_page

SENDS = {"Content-Type": "application/json"}
ODD = {
    "a list": '[["a", {"b": [1]}]]',
    "an object": '{"a": 1}',
    "a negative number": "-1",
    "a fraction": "1.5",
    "a huge number": "9" * 40,
    "a number of many digits": "9" * 5_000,
    "no number": "NaN",
    "an endless number": "1e999",
    "true": "true",
    "half a character": '"\\ud800"',
    "half a character as a name": '{"\\ud800": 1}',
    "a long text": json.dumps("x" * 300_000),
    "deep": '{"a":' * 150 + "1" + "}" * 150,
    "too deep": "[" * 400 + "]" * 400,
}
CHANGES = "verdict calls answer stop comment ask_again event_id remember option plan_id toggles remember_arguments"
FIELDS = {
    "decide": (*CHANGES.split(), "args_digest", "request_id", "f", "d", "by", "proof", "unknown"),
    "pause": ("reason", "by", "proof", "event_id", "unknown"),
    "resume": ("reason", "by", "proof", "event_id", "unknown"),
    "message": ("text", "by", "proof", "event_id", "unknown"),
    "top_up": ("max_steps", "max_llm_cost_usd", "quotas", "by", "proof", "event_id", "unknown"),
    "cancel": ("confirm", "reason", "by", "proof", "to_step", "unknown"),
    "undo": ("to_step", "confirm", "by", "proof", "event_id", "unknown"),
}
BASES = {"decide": {"verdict": "approve", "args_digest": "0" * 64}, "message": {"text": "be brief"}}
"""What a deed needs; a decision also says what was shown."""
TAKEN = {
    ("decide", "answer"): {"a list", "an object", "a negative number", "a fraction", "a huge number", "true", "deep"},
    ("decide", "stop"): {"true"},
    ("decide", "f"): {"a long text"},
    ("decide", "d"): {"a long text"},
    ("decide", "ask_again"): {"true"},
    ("decide", "remember"): {"true"},
    ("top_up", "max_llm_cost_usd"): {"a fraction"},
}
"""What fits a field after all."""


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder, scripts = tmp_path_factory.mktemp("odd"), Scripts()
    policy = "default: {write_safe: ask}"
    async with (
        engine(temporal, folder, scripts, policy=policy, **behind_a_proxy()) as running,
        served_page(running) as page,
        page.person(ANA) as ana,
    ):
        handle = await running.start(scripts.task(mail("a@x.example")))
        await pending(handle)
        await listed(ana, handle.id)
        yield ana, handle


async def sent(ana, handle, deed, field, odd):
    """Send a field beside what its deed needs; return the status and what the page says."""
    shown = await ana.get(f"/api/requests/{handle.id}/r1")
    token = {**SENDS, "Authorization": f"Bearer {shown.headers['Backstay-Csrf']}"}
    was = {"f": shown.json()["run_id"], "d": shown.json()["live"]["digest"]} if deed == "decide" else {}
    needed = {name: value for name, value in (BASES.get(deed, {}) | was).items() if name != field}
    path = f"/api/requests/{handle.id}/r1/decide" if deed == "decide" else f"/api/runs/{handle.id}/{deed}"
    # What is odd may be no JSON that Python writes.
    body = json.dumps({**needed, field: "odd"}).replace(json.dumps("odd"), odd)
    answer = await ana.post(path, content=body, headers=token)
    return answer.status_code, answer.json()


@promise("page:odd-json")
@pytest.mark.parametrize(
    ("deed", "field"), spread([(deed, field) for deed, fields in FIELDS.items() for field in fields], 4)
)
async def test_odd_json_in_a_field_is_refused_by_the_name_of_the_field(opened, deed, field):
    ana, handle = opened
    for name, odd in ODD.items():
        status, said = await sent(ana, handle, deed, field, odd)
        fits = name in TAKEN.get((deed, field), ())
        # A decision that fits is about other arguments than the request: it is refused, too.
        assert 200 <= status < 300 if fits and deed == "top_up" else 400 <= status < 500, (name, said)
        assert fits or said["error"]["message"].startswith(field) or f".{field}: " in said["error"]["message"], name
    assert len(await pending(handle)) == 1


@promise("page:odd-json")
@pytest.mark.thorough
async def test_an_odd_name_of_a_field_is_refused_as_it_can_be_shown(opened):
    ana, handle = opened
    for deed in FIELDS:
        status, said = await sent(ana, handle, deed, "\ud800", "1")
        assert (status, said["error"]["message"]) == (422, "<U+D800>: holds half a character; give whole ones")
