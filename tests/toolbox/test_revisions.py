"""Which revision of the protocol is spoken with servers that refuse the newest one, as public reports tell it."""

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.requirements import promise
from tests.serving import served

TOOL = {"name": "fine", "inputSchema": {"type": "object"}}
PARAMS, MODERN = -32602, -32022
SAID = "Unsupported protocol version"
REFUSED = {
    # higress-group/higress#3226, feichai0017/NoKV#384: no list of those that it speaks
    "words": (["2025-03-26"], {"code": PARAMS, "message": "unsupported protocol version: OFFERED"}),
    # hkr04/cpp-mcp#10, and as the specification has it:
    # https://modelcontextprotocol.io/specification/2025-06-18/basic/lifecycle#error-handling
    "listed": (
        ["2024-11-05"],
        {"code": PARAMS, "message": SAID, "data": {"supported": ["2024-11-05"], "requested": "OFFERED"}},
    ),
    # milind-soni/OpenMausBot#517
    "named": (["2024-11-05"], {"code": PARAMS, "message": f"{SAID}: OFFERED. Supported: 2024-11-05"}),
    # we-promise/sure#2631
    "request": (["2025-06-18"], {"code": -32600, "message": "Unsupported MCP protocol version: OFFERED"}),
    # corezoid/corezoid-ai-plugin#98, gtapps/claude-code-hermit#912: the error of a later revision
    "modern": (
        ["2025-03-26"],
        {"code": MODERN, "message": SAID, "data": {"supported": ["2025-03-26"], "requested": "OFFERED"}},
    ),
    # the data may be anything: https://www.jsonrpc.org/specification#error_object
    "said": (["2025-06-18"], {"code": PARAMS, "message": SAID, "data": "supported: 2025-06-18"}),
    "number": (["2025-06-18"], {"code": PARAMS, "message": SAID, "data": 5}),
    # kentcdodds/kody#1713: the same by its older number
    "older": (["2025-06-18"], {"code": -32004, "message": "no", "data": {"supported": ["2025-06-18", "2024-11-05"]}}),
}


@promise("tools:others-revisions")
@pytest.mark.parametrize("case", REFUSED)
async def test_a_server_that_refuses_the_newest_revision_is_offered_one_that_it_speaks(opened, tmp_path, raw, case):
    speaks, refusal = REFUSED[case]
    entry = raw(tools=[TOOL], speaks=speaks, refusal=refusal)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert (set(catalog.definitions), catalog.unavailable) == ({"raw.fine"}, {})


def over_http(speaks):
    """Refuse a revision by HTTP alone, as xpzouying/xiaohongshu-mcp#697 and newo-ether/Agora#78 tell it."""
    said = f"Bad Request: {SAID} (supported versions: {', '.join(speaks)})"

    async def answer(request):
        asked = await request.json()
        name = {"jsonrpc": "2.0", "id": asked.get("id")}
        header = request.headers.get("mcp-protocol-version")
        offered = asked.get("params", {}).get("protocolVersion", header)
        if (header is not None and header not in speaks) or (offered is not None and offered not in speaks):
            return JSONResponse({"error": {"code": -32000, "message": said}, "jsonrpc": "2.0"}, status_code=400)
        match asked["method"]:
            case "initialize":
                shape = {"protocolVersion": offered, "serverInfo": {"name": "web", "version": "1"}}
                return JSONResponse(name | {"result": shape | {"capabilities": {"tools": {}}}})
            case "tools/list":
                return JSONResponse(name | {"result": {"tools": [TOOL]}})
            case _ if "id" in asked:
                return JSONResponse(name | {"error": {"code": -32601, "message": "no such method"}})
            case _:
                return Response(status_code=202)

    return Starlette(routes=[Route("/mcp", answer, methods=["POST"])])


@promise("tools:others-revisions")
async def test_a_refusal_of_the_revision_by_http_is_read_too(opened, tmp_path):
    speaks = ["2025-06-18", "2025-03-26", "2024-11-05"]
    async with (
        served(over_http(speaks)) as url,
        opened(tmp_path, {"mcpServers": {"web": {"url": f"{url}/mcp"}}}) as box,
    ):
        catalog = await box.catalog("anyone")
    assert (set(catalog.definitions), catalog.unavailable) == ({"web.fine"}, {})


@promise("tools:others-revisions")
async def test_the_first_revision_of_all_is_taken_as_other_hosts_take_it(opened, tmp_path, raw):
    # strowk/mcp-k8s-go#40
    entry = raw(tools=[TOOL], handshake={"protocolVersion": "2024-10-07"})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        assert set((await toolbox.catalog("anyone")).definitions) == {"raw.fine"}


@promise("tools:others-revisions")
async def test_a_server_that_only_knows_handshakes_may_say_so_when_it_is_discovered(opened, tmp_path, raw):
    # https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
    discover = {"supportedVersions": ["2025-06-18"], "capabilities": {"tools": {}}, "resultType": "complete"}
    supported = {"supported": ["2025-11-25", "2025-06-18"], "requested": "2026-07-28"}
    entries = {
        "named": raw("named", tools=[TOOL], discover={**discover, "ttlMs": 0, "cacheScope": "private"}),
        "refused": raw("refused", tools=[TOOL], discover_refusal={"code": MODERN, "message": SAID, "data": supported}),
    }
    async with opened(tmp_path, {"mcpServers": entries}) as toolbox:
        assert set((await toolbox.catalog("anyone")).definitions) == {"named.fine", "refused.fine"}


@promise("tools:others-revisions")
@pytest.mark.parametrize(
    "refusal",
    [
        {"code": PARAMS, "message": f"{SAID}: OFFERED", "data": {"supported": ["2027-01-01"]}},
        {"code": MODERN, "message": SAID, "data": {"supported": ["2027-01-01"], "requested": "OFFERED"}},
        {"code": PARAMS, "message": f"{SAID}: OFFERED"},
    ],
)
async def test_a_server_that_shares_no_revision_is_named_with_those_that_it_speaks(opened, tmp_path, raw, refusal):
    entry = raw(tools=[TOOL], speaks=["2027-01-01"], refusal=refusal)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        said = (await toolbox.catalog("anyone")).unavailable["raw"]
    assert SAID in said
    assert ("2027-01-01" in said) == ("data" in refusal)


@promise("tools:others-revisions")
async def test_another_refusal_of_a_handshake_is_told_and_no_revision_is_offered_anew(opened, tmp_path, raw):
    entry = raw(tools=[TOOL], speaks=["2024-11-05"], refusal={"code": PARAMS, "message": "the licence has expired"})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        assert "the licence has expired" in (await toolbox.catalog("anyone")).unavailable["raw"]


DISCOVER = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
DISCOVER |= {"ttlMs": 0, "cacheScope": "private", "_meta": {}}
SPECIFICATION = "https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching"
HINTS = {
    # modelcontextprotocol/modelcontextprotocol#2747: missing, which is left to the client's own sense
    "missing": ({}, False),
    # NousResearch/hermes-agent#97410 and #101390: what servers of the SDK write where nobody said anything
    "nothing said": ({"ttlMs": 0, "cacheScope": "private"}, False),
    # leehack/mcp_dart#212; by SPECIFICATION, as 0
    "negative": ({"ttlMs": -1}, False),
    "very negative": ({"ttlMs": -(10**30)}, False),
    # NousResearch/hermes-agent#95988: short ones, after which a live server is asked again
    "short": ({"ttlMs": 1}, True),
    "fraction": ({"ttlMs": 1.5, "cacheScope": "public"}, True),
    # laravel/mcp#301, PrefectHQ/fastmcp#4464
    "minutes": ({"ttlMs": 300_000, "cacheScope": "public"}, False),
    "a year": ({"ttlMs": 365 * 24 * 3600 * 1000}, False),
    "beyond reason": ({"ttlMs": 10**30}, False),
    # NousResearch/hermes-agent#94992 and csharp.sdk.modelcontextprotocol.io ICacheableResult: scopes off the list
    "empty scope": ({"ttlMs": 1, "cacheScope": ""}, True),
    "unknown scope": ({"ttlMs": 1, "cacheScope": "tenant"}, True),
    "scope of another kind": ({"ttlMs": 1, "cacheScope": None}, True),
    # aws-samples/sample-voice-of-customer-datalake#360: a hint in a form of its own
    "own form": ({"_meta": {"cacheHints": {"cacheable": True}}}, False),
    "text": ({"ttlMs": "300000"}, False),
    "null": ({"ttlMs": None}, False),
    "list": ({"ttlMs": [1]}, False),
}


@promise("tools:list-fresh")
@pytest.mark.parametrize("hint", HINTS)
async def test_whatever_a_server_says_of_how_long_its_list_counts_its_tools_are_there(opened, tmp_path, raw, hint):
    listing, seen = HINTS[hint]
    entry = raw(tools=[TOOL], discover=DISCOVER, listing=listing)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert (set(catalog.definitions), catalog.unavailable, catalog.problems) == ({"raw.fine"}, {}, [])
        raw(tools=[TOOL, TOOL | {"name": "new"}], discover=DISCOVER, listing=listing)
        assert ("raw.new" in (await toolbox.catalog("anyone")).definitions) == seen
