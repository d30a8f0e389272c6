"""models.yaml is read strictly: what is wrong is named by file, field and fix, and no key is shown."""

import asyncio
import json

import openai
import pytest

from activities.endpoints.endpoints import models_of, open_endpoints
from activities.endpoints.models_file import read_models
from backstay.errors import SettingsInvalid, WorkerMisfit
from backstay.settings import Settings
from tests.requirements import promise

GOOD = """
endpoints:
  openai: {base_url: "https://api.example.com/v1", key: "${A_KEY}"}
  local: {base_url: "http://127.0.0.1:11434/v1", key: null}
models:
  main: {endpoint: openai, model: gpt-5.4-mini, price: {input: 0.75, cached: 0.08, output: 4.5},
         context_tokens: 128000, tools: auto, strict: auto, fallback: [small]}
  small: {endpoint: local, model: qwen3, price: {input: 0, output: 0}}
use: {act: main, perception: small, closing: small}
"""
KEY = "a-key-that-is-long-enough"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("A_KEY", KEY)
    monkeypatch.delenv("BACKSTAY_MODEL", raising=False)
    return tmp_path


def settings(**values):
    return Settings.load(None, **values)


def fault(folder, text, name="models.yaml"):
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(SettingsInvalid) as refused:
        read_models(settings())
    return str(refused.value)


@promise("models:file")
async def test_without_a_file_there_is_the_default_endpoint_only(folder):
    async with open_endpoints(settings(openai_base_url="http://127.0.0.1:1/v1")) as endpoints:
        target = endpoints.main("any")
        assert (target.name, target.model, target.where) == ("any", "any", "http://127.0.0.1:1/v1")
        assert (endpoints.chain(target), endpoints.chain_for("closing")) == ((target,), ())


@promise("models:file")
async def test_entries_lead_to_their_endpoints_and_other_names_to_the_default_one(folder):
    (folder / "models.yaml").write_text(GOOD, encoding="utf-8")
    async with open_endpoints(settings()) as endpoints:
        main = endpoints.main()
        assert (main.name, main.model, main.client.api_key, main.fallback) == ("main", "gpt-5.4-mini", KEY, ("small",))
        assert [target.where for target in endpoints.chain(main)] == [
            "https://api.example.com/v1",
            "http://127.0.0.1:11434/v1",
        ]
        assert endpoints.main("gpt-5.4-mini").listed is False
        assert [target.name for target in endpoints.chain_for("perception")] == ["small"]
        assert endpoints.models.secrets == {KEY}
        assert KEY not in repr(endpoints)
        with pytest.raises(WorkerMisfit, match="knows no model 'gone'"):
            endpoints.target("gone", listed=True)


@promise("models:setting")
@pytest.mark.parametrize(("own", "name"), [({}, "main"), ({"model": "small"}, "small"), ({"model": "other"}, "other")])
async def test_the_setting_comes_before_what_the_file_uses(folder, own, name):
    (folder / "models.yaml").write_text(GOOD, encoding="utf-8")
    async with open_endpoints(settings(**own)) as endpoints:
        assert endpoints.main().name == name
        assert endpoints.main(None, "wanted").name == "wanted"


@promise("plans:config")
def test_it_may_be_json_too_but_not_both(folder):
    data = {"endpoints": {"a": {"base_url": "http://127.0.0.1:1/v1"}}, "models": {"m": {"endpoint": "a", "model": "x"}}}
    (folder / "models.json").write_text(json.dumps(data), encoding="utf-8")
    assert list(read_models(settings()).file.models) == ["m"]
    assert "only one of them can be obeyed" in fault(folder, GOOD)


@promise("models:setting")
def test_a_file_that_a_setting_names_must_be_there(folder):
    with pytest.raises(SettingsInvalid, match=r"BACKSTAY_MODELS: there is no file .*elsewhere\.yaml"):
        read_models(settings(models=folder / "elsewhere.yaml"))


@promise("models:strict")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("endpoint: local", "endpoint: lokal", "models.small.endpoint: there is no endpoint 'lokal'; name one of"),
        ("fallback: [small]", "fallback: [tiny]", "models.main.fallback.0: there is no model 'tiny'; name one of"),
        ("fallback: [small]", "fallback: [main]", "models.main.fallback.0: 'main' was asked already"),
        ("fallback: [small]", "fallback: [small, small]", "models.main.fallback.1: 'small' was asked already"),
        ("closing: small", "closing: gpt", "use.closing: there is no model 'gpt'; name one of"),
        ("closing: small", "closes: small", "use.closes: unknown field; did you mean 'closing'?"),
        ("tools: auto", "tool: auto", "models.main.tool: unknown field; did you mean 'tools'?"),
        ("cached: 0.08", "caches: 0.08", "models.main.price.caches: unknown field; did you mean 'cached'?"),
        ("use:", "uses:", "uses: unknown field; did you mean 'use'?"),
        ("tools: auto", "tools: maybe", "models.main.tools:"),
        ("tools: auto", "effort: huge", "models.main.effort: Input should be 'none', 'minimal', 'low', 'medium'"),
        ("tools: auto", "efort: low", "models.main.efort: unknown field; did you mean 'effort'?"),
        ("context_tokens: 128000", "context_tokens: 10", "models.main.context_tokens:"),
        ("input: 0.75", "input: -1", "models.main.price.input:"),
        ("model: qwen3, ", "", "models.small.model: required field is missing; add it"),
        ("http://127", "ftp://127", "endpoints.local.base_url: not a web address"),
        ("http://127", "http://me:word@127", "endpoints.local.base_url: holds more than an address"),
        ("${A_KEY}", "sk-written-out", "endpoints.openai.key: not a reference; write ${NAME}"),
        ("${A_KEY}", "${NO_KEY}", "endpoints.openai.key: the environment variable NO_KEY is not set"),
        ("  small:", "  sm all:", "not a usable name"),
    ],
)
def test_what_is_wrong_is_named_with_its_field_and_its_fix(folder, old, new, said):
    assert old in GOOD
    text = fault(folder, GOOD.replace(old, new, 1))
    assert text.startswith("models.yaml: ")
    assert said in text
    assert "sk-written-out" not in text
    assert "me:word" not in text


@promise("models:strict")
@pytest.mark.parametrize("text", ["[", "- main", "a: b: c", "models: 5", "\0"])
def test_what_is_no_such_file_is_refused(folder, text):
    assert fault(folder, text).startswith("models.yaml: ")


@promise("models:strict")
def test_a_key_that_no_header_can_carry_is_refused_by_its_place_and_not_quoted(folder, monkeypatch):
    monkeypatch.setenv("A_KEY", "sk-pasted…short")
    said = fault(folder, GOOD)
    assert "endpoints.openai.key: the environment variable A_KEY holds a character that no header can carry" in said
    assert "pasted" not in said


@promise("models:names")
@pytest.mark.parametrize("listed", [[{"id": "a"}, {"id": "b"}, "x"], {"data": [{"id": "a"}, {"name": "models/b"}]}])
async def test_the_models_of_an_endpoint_are_read_from_a_list_and_from_an_object(folder, listed):
    body = json.dumps(listed).encode()

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(head.encode() + b"connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    named = {"endpoints": {"e": {"base_url": address, "key": None}}, "models": {"m": {"endpoint": "e", "model": "m"}}}
    (folder / "models.yaml").write_text(json.dumps(named), encoding="utf-8")
    async with server, open_endpoints(settings()) as endpoints:
        assert await models_of(endpoints.target("m", listed=True)) == ["a", "b"]


@promise("models:keyless")
async def test_an_endpoint_without_a_key_is_sent_no_authorization(folder):
    heads = []

    async def answer(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    entries = {"open": {"base_url": address, "key": None}, "closed": {"base_url": address, "key": "${A_KEY}"}}
    named = {name: {"endpoint": name, "model": "m"} for name in entries}
    (folder / "models.yaml").write_text(json.dumps({"endpoints": entries, "models": named}), encoding="utf-8")
    async with server, open_endpoints(settings()) as endpoints:
        for name in entries:
            with pytest.raises(openai.BadRequestError):
                await models_of(endpoints.target(name, listed=True))

    assert ["authorization" in head for head in heads] == [False, True]
