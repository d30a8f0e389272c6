"""Pictures and PDFs in answers reach models that take them; the others are told what they do not see."""

import asyncio
import base64
import io
import json
import re
import struct
import zlib
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
import yaml
from PIL import Image

from backstay.testing import Reply, ScriptedModel
from tests.e2e.labelled import DONE, Labelled, calls
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import engine
from tests.native_apis import KEY, MODELS, Says, Vendor
from tests.requirements import promise
from tests.sizes import spread

PRICE = {"input": 1.0, "cached": 0.1, "output": 4.0}


def picture(size, kind="PNG", color="red"):
    buffer = io.BytesIO()
    Image.new("RGB", size, color).save(buffer, kind)
    return buffer.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def bomb(width, height):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


def pdf(pages, more=b"", text=b""):
    kids = b" ".join(b"%d 0 R" % (10 + n) for n in range(pages))
    page = b"<< /Type /Page /Parent 2 0 R /Contents 3 0 R >> "
    head = b" ".join(b"%d %d" % (10 + n, n * len(page)) for n in range(pages)) + b" "
    packed = zlib.compress(head + page * pages)
    shown = zlib.compress(b"BT (" + text + b") Tj ET")
    return b"".join(
        (
            b"%PDF-1.7\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n",
            b"2 0 obj << /Type /Pages /Count %d /Kids [" % pages + kids + b"] >> endobj\n",
            b"3 0 obj << /Length %d /Filter /FlateDecode >> stream\n" % len(shown) + shown + b"\nendstream endobj\n",
            b"4 0 obj << /Type /ObjStm /N %d /First %d /Filter /FlateDecode >> stream\n" % (pages, len(head)),
            packed + b"\nendstream endobj\n" + more + b"%%EOF",
        )
    )


SMALL, WIDE, OTHER = picture((30, 20)), picture((4000, 100)), picture((9, 9), "JPEG")


def part(data, mime="image/png", kind="image"):
    encoded = data if isinstance(data, str) else base64.b64encode(data).decode()
    if kind == "image":
        return {"type": "image", "data": encoded, "mimeType": mime}
    return {"type": "resource", "resource": {"uri": "a://x", "mimeType": mime, "blob": encoded}}


CASES = {
    "small": ([part(SMALL)], "image/png", ""),
    "mistaken": ([part(OTHER, "image/png")], "image/jpeg", ""),
    "jpg": ([part(OTHER, "image/jpg")], "image/jpeg", ""),
    "resource": ([part(SMALL, "application/octet-stream", "resource")], "image/png", ""),
    "wide": ([part(WIDE)], "image/png", ""),
    "beside": ([{"type": "text", "text": "a look"}, part(SMALL)], "image/png", ""),
    "pdf": ([part(pdf(2), "application/pdf", "resource")], "application/pdf", ""),
    "empty": ([part("")], "", "it is empty"),
    "text": ([part(b"no picture at all")], "", "its bytes are no picture"),
    "svg": ([part(b"<svg xmlns='a'><script/></svg>", "image/svg+xml")], "", "a drawing in SVG"),
    "bomb": ([part(bomb(60_000, 60_000))], "", "3,600,000,000 pixels"),
    "inner": ([part(bomb(3000, 3000))], "", "it cannot be decoded"),
    "cut": ([part(SMALL[:60])], "", "it cannot be decoded"),
    "nothing": ([part(bomb(0, 0))], "", "its size makes no sense"),
    "locked": ([part(pdf(1, b"<< /Encrypt 1 0 R >>"), "application/pdf", "resource")], "", "it is encrypted"),
    "long": ([part(pdf(101), "application/pdf", "resource")], "", "101 pages"),
    "wordy": ([part(pdf(1, text=b"word " * 20_000), "application/pdf", "resource")], "application/pdf", ""),
    "full": ([part(pdf(1, text=b"word " * 100_000), "application/pdf", "resource")], "", "there is no room"),
    "miscounted": (
        [part(pdf(3).replace(b"/Count 3", b"/#43ount 1"), "application/pdf", "resource")],
        "",
        "its pages cannot be counted: it says that it has 1 pages, and has 3",
    ),
    "roomy": ([part(pdf(30), "application/pdf", "resource")], "", "there is no room"),
}
"""By tool: what it answers, what a model that takes it is shown, or why it is not."""
REFUSES = Reply(status=404, body=b'{"error": {"message": "No endpoints found that support image input"}}')


def looks(*names):
    """Look so many times, and then finish."""

    def script(talk):
        made = len(talk.calls())
        return Reply(calls=[(f"desk__{names[made]}", {})]) if made < len(names) else DONE

    return script


def refuses(talk):
    if not talk.calls():
        return Reply(calls=[("desk__small", {})])
    return REFUSES if "image_url" in json.dumps(talk.messages) else DONE


def reads_again(talk):
    if len(talk.calls()) != 1:
        return looks("large", "")(talk)
    body = {"id": "reading", "type": "function"}
    ref = re.search(r'"storage_ref": ?"([0-9a-f]{40})"', json.dumps(talk.answers()[0]))[1]
    return calls(body | {"function": {"name": "read_result", "arguments": json.dumps({"ref": ref})}})


SCRIPTS = Labelled(
    **{name: looks(name) for name in CASES}, again=reads_again, twice=looks("small", "small"), refused=refuses
)


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("media")
    vendors = {}

    def natively(answered, _body):
        return Says("", (("desk__small", {}),)) if answered == 0 else Says("", (("finish", {"summary": "done"}),))

    async with AsyncExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("NATIVE_KEY", KEY)
        model = await stack.enter_async_context(ScriptedModel(SCRIPTS))
        for api in MODELS:
            vendors[api] = await stack.enter_async_context(Vendor(api, natively).open())
        endpoints = {
            api: {"base_url": vendor.base_url, "key": "${NATIVE_KEY}", "api": api} for api, vendor in vendors.items()
        }
        endpoints["chat"] = {"base_url": model.base_url}
        models = {api: {"endpoint": api, "model": name, "price": PRICE} for api, name in MODELS.items()}
        models["seeing"] = {"endpoint": "chat", "model": "gpt-5.4", "price": PRICE}
        models["blind"] = {"endpoint": "chat", "model": "gpt-5.4", "price": PRICE, "images": False, "pdfs": False}
        models["dear"] = models["seeing"] | {"image_tokens": 1_000_000}
        models["unknown"] = {"endpoint": "chat", "model": "some-model", "price": PRICE}
        path = folder / "models.yaml"
        said = yaml.safe_dump({"endpoints": endpoints, "models": models})
        await asyncio.to_thread(path.write_text, said, encoding="utf-8")
        desk = ScriptedServer(folder / "desk.json", [reads(name) for name in (*CASES, "large")])
        desk.answers = {name: {"content": content} for name, (content, _, _) in CASES.items()}
        desk.answers["large"] = {"content": [part(OTHER)], "data": {"rows": [{"text": "x" * 50}] * 2000}}
        desk.answers["beside"]["data"] = {"seen": 1}
        toolbox = toolbox_of_servers(folder, desk=desk)
        made = await stack.enter_async_context(engine(temporal, folder, [], toolbox=toolbox, models=path))
        yield made, model, vendors


async def shown(opened, label, model, **task):
    """Return what the model was shown with its last question, behind the answers of tools, and the Result."""
    made, endpoint, _ = opened
    task = {"text": f"<{label}> Look.", "model": model, "budget": {"max_llm_cost_usd": 1.0}, **task}
    result = await asyncio.wait_for((await made.start(task)).result(), 100)
    asked = [body for body in endpoint.requests if f"<{label}>" in json.dumps(body) and "tools" in body]
    content = [message["content"] for message in asked[-1]["messages"] if isinstance(message["content"], list)]
    return [part for parts in content for part in parts], result


def bytes_of(part):
    url = part["image_url"]["url"] if part["type"] == "image_url" else part["file"]["file_data"]
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return kind, base64.b64decode(data, validate=True)


@promise("models:media-shown")
@pytest.mark.parametrize("case", spread(list(CASES), 8))
async def test_a_model_that_takes_them_is_shown_pictures_and_pdfs_and_told_of_the_others(opened, case):
    content, mime, why = CASES[case]
    parts, result = await shown(opened, case, "seeing")
    assert result["outcome"] == "completed"
    if why:
        (told,) = parts
        assert told["text"].startswith("You do not see ")
        assert why in told["text"]
        return
    told, seen = parts
    kind, data = bytes_of(seen)
    assert told["text"].startswith("This is the ")
    assert kind == mime
    if case == "wide":
        assert Image.open(io.BytesIO(data)).size == (1568, 39)
    else:
        sent = content[-1].get("data") or content[-1]["resource"]["blob"]
        assert data == base64.b64decode(sent)


@promise("models:media-told")
@pytest.mark.parametrize(("model", "case"), [("blind", "small"), ("unknown", "small"), ("blind", "pdf")])
async def test_a_model_that_takes_none_is_told_what_it_does_not_see(opened, model, case):
    (told,), _ = await shown(opened, case, model)
    assert told["text"].startswith(
        "You do not see the PDF (2 pages)" if case == "pdf" else "You do not see the picture"
    )
    assert told["text"].endswith("this model takes no PDFs." if case == "pdf" else "this model takes no pictures.")


@promise("models:media-shown")
async def test_the_same_picture_is_sent_once_in_a_request(opened):
    parts, _ = await shown(opened, "twice", "seeing")
    assert [part["type"] for part in parts] == ["text", "image_url", "text"]
    assert parts[-1]["text"].endswith("is shown above.")
    again, _ = await shown(opened, "again", "seeing")
    assert again[-1]["text"].endswith("of the answer to reading is shown above.")


@promise("models:media-refused")
async def test_an_endpoint_that_takes_none_after_all_is_asked_without(opened):
    parts, result = await shown(opened, "refused", "seeing")
    assert (result["outcome"], [part["type"] for part in parts]) == ("completed", ["text", "text"])
    assert "the model endpoint does not take it" in parts[-1]["text"]
    assert "image_url" in json.dumps((await shown(opened, "small", "seeing"))[0])


@promise("models:media-price")
async def test_a_picture_is_reserved_before_it_is_sent(opened):
    made, endpoint, _ = opened
    before = len(endpoint.requests)
    # A dollar for each picture, as the operator says.
    task = {"text": "<small> Look.", "model": "dear", "budget": {"max_llm_cost_usd": 0.9}}
    result = await asyncio.wait_for((await made.start(task)).result(), 100)
    assert result["outcome"] == "budget_exceeded"
    assert "image_url" not in json.dumps(endpoint.requests[before:])
    task["budget"] = {"max_llm_cost_usd": 1.9}
    result = await asyncio.wait_for((await made.start(task)).result(), 100)
    assert result["outcome"] == "completed"
    assert "image_url" in json.dumps(endpoint.requests[before:])


@promise("models:media-text")
async def test_a_pdf_is_reserved_by_the_text_that_its_pages_hold(opened):
    """One page of 100,000 bytes may be as many tokens, which cost 0.10 USD."""
    made, endpoint, _ = opened
    results = {}
    for case in ("pdf", "wordy"):
        before = len(endpoint.requests)
        task = {"text": f"<{case}> Look.", "model": "seeing", "budget": {"max_llm_cost_usd": 0.1}}
        result = await asyncio.wait_for((await made.start(task)).result(), 100)
        results[case] = (result["outcome"], '"file_data"' in json.dumps(endpoint.requests[before:]))
    assert results == {"pdf": ("completed", True), "wordy": ("budget_exceeded", False)}


@promise("models:media-native")
@pytest.mark.parametrize("api", MODELS)
async def test_native_apis_are_sent_a_picture_in_their_own_form(opened, api):
    made, _, vendors = opened
    task = {"text": "Look.", "model": api, "budget": {"max_llm_cost_usd": 1.0}}
    result = await asyncio.wait_for((await made.start(task)).result(), 100)
    assert (result["outcome"], vendors[api].refused) == ("completed", [])
    (last,) = [body for body in vendors[api].requests if base64.b64encode(SMALL).decode() in json.dumps(body)]
    assert "image/png" in json.dumps(last)


@promise("models:media-history")
async def test_no_byte_of_a_picture_stands_in_history(opened):
    made, _, _ = opened
    handle = await made.start({"text": "<wide> Look.", "model": "seeing"})
    await asyncio.wait_for(handle.result(), 100)
    history = (await handle.fetch_history()).to_json()
    encoded = base64.b64encode(WIDE).decode()
    assert encoded[100:160] not in history
