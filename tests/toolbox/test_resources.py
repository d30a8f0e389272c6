"""Resources of servers as tools that only read: of the SDK's own servers, and as public reports tell of others."""

import asyncio
import base64
import hashlib
import socket

import pytest

from backstay.tools.tool import Safety
from tests.requirements import promise
from toolbox.mcp import paging

EVERY = pytest.mark.parametrize("provider", ["office", "remote", "events"])
OFFERS = {"capabilities": {"tools": {}, "resources": {}}}
PLAN = {"uri": "a://plan", "name": "plan"}
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
TOOL = {"name": "fine", "inputSchema": {"type": "object"}}


async def call(toolbox, name, arguments=None, **options):
    definition = (await toolbox.catalog("anyone")).definitions[name]
    return await toolbox.call(definition, arguments or {}, deadline_s=20.0, **options)


async def read(toolbox, uri, **values):
    return await call(toolbox, "raw.resources_read", {"uri": uri} | ({"values": values} if values else {}))


@promise("tools:resources-read")
@EVERY
async def test_resources_are_listed_and_read_over_every_transport(office, provider):
    listed = (await call(office, f"{provider}.resources_list")).data
    assert [found["uri"] for found in listed["resources"]] == ["office://plan", "office://photo"]
    assert [found["template"] for found in listed["templates"]] == ["office://desks/{name}{?side}"]
    assert (await call(office, f"{provider}.resources_read", {"uri": "office://plan"})).data == "two desks"
    filled = {"uri": "office://desks/{name}{?side}", "values": {"name": "Ana B", "side": "right"}}
    assert (await call(office, f"{provider}.resources_read", filled)).data == "right of Ana B: a pen"
    photo = await call(office, f"{provider}.resources_read", {"uri": "office://photo"})
    assert list(photo.files.values()) == [GIF]
    missing = await call(office, f"{provider}.resources_read", {"uri": "office://none"})
    assert not missing.success


@promise("tools:resources-read")
async def test_a_link_in_an_answer_names_the_tool_that_reads_it(office):
    (link,) = [part for part in (await call(office, "office.picture")).data if "uri" in part]
    assert (await call(office, link["read_with"], {"uri": link["uri"]})).data == "two desks"


@promise("tools:resources-class")
async def test_they_only_read_others_words_and_may_be_declared_and_excluded(opened, raw, tmp_path):
    lists = {"resources/list": {"": {"resources": [PLAN]}}}
    entry = raw(handshake=OFFERS, methods=lists)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        tool = (await toolbox.catalog("anyone")).definitions["raw.resources_read"].tool
        assert (tool.safety, tool.content, tool.egress) == (Safety.READ_ONLY, "others", False)
    declared = {"raw": {"tools": {"resources_read": {"content": "own", "egress": True}}}}
    hidden = entry | {"exclude": ["resources_list"]}
    async with opened(tmp_path, {"mcpServers": {"raw": hidden}, "providers": declared}) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert (list(catalog.definitions), catalog.problems) == (["raw.resources_read"], [])
        tool = catalog.definitions["raw.resources_read"].tool
        assert (tool.safety, tool.content, tool.egress) == (Safety.READ_ONLY, "own", True)


@promise("tools:resources-class")
@pytest.mark.parametrize("template", ["https://{+page}", "{scheme}://x", "HTTP://fixed/"])
async def test_a_server_that_reads_addresses_elsewhere_reaches_out(opened, raw, tmp_path, template):
    lists = {"resources/templates/list": {"": {"resourceTemplates": [{"uriTemplate": template, "name": "n"}]}}}
    async with opened(tmp_path, {"mcpServers": {"raw": raw(handshake=OFFERS, methods=lists)}}) as toolbox:
        assert (await toolbox.catalog("anyone")).definitions["raw.resources_read"].tool.egress


WEB = {"uriTemplate": "https://{+page}", "name": "web"}
NOT_TO_THE_END = {
    "a later page leads elsewhere": {
        "resources/templates/list": {
            "": {"resourceTemplates": [], "nextCursor": "b"},
            "b": {"resourceTemplates": [WEB]},
        }
    },
    "a later page is refused": {"resources/list": {"": {"resources": [PLAN], "nextCursor": "b"}}},
    "a list is refused": {"resources/list": {"": {"resources": [PLAN]}}, "resources/templates/list": {}},
    "a list has no end": {"resources/list": {at: {"resources": [PLAN], "nextCursor": "b"} for at in ("", "b")}},
}


@promise("tools:resources-class")
@pytest.mark.parametrize("case", NOT_TO_THE_END)
async def test_a_server_whose_lists_are_not_known_to_the_end_may_reach_out(opened, raw, tmp_path, case):
    entry = raw(handshake=OFFERS, methods=NOT_TO_THE_END[case])
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        found = (await toolbox.catalog("anyone")).definitions
        assert found["raw.resources_read"].tool.egress
        assert "raw.resources_list" in found


@promise("tools:resources-class")
async def test_a_list_that_was_too_slow_is_asked_for_again(opened, raw, tmp_path, monkeypatch):
    entry = raw(handshake=OFFERS, methods={"resources/list": {"": {"resources": [PLAN]}}})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        for within_s, reaches_out in ((0.0, True), (5.0, False)):
            monkeypatch.setattr(paging, "_ASKED_S", within_s)
            catalog = await toolbox.catalog("anyone", fresh=True)
            assert catalog.definitions["raw.resources_read"].tool.egress is reaches_out


@promise("tools:resources-quiet")
async def test_a_server_that_lists_none_is_read_by_its_links_only(opened, raw, tmp_path):
    link = {"type": "resource_link", "uri": "a://made just now", "name": "report"}
    answers = {"fine": {"result": {"content": [link], "structuredContent": {"n": 1}}}}
    methods = {
        "resources/list": {"": {"resources": []}},
        "resources/read": {"a://made just now": {"contents": [{"text": "so"}]}},
    }
    entry = raw(handshake=OFFERS, methods=methods, tools=[TOOL], answers=answers)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert catalog.search("read a resource") == []
        assert "raw.resources_read" not in [hit.tool for hit in catalog.search("")]
        (found,) = (await call(toolbox, "raw.fine")).data["_content"]
        assert found["read_with"] == "raw.resources_read"
        assert (await read(toolbox, found["uri"])).data == "so"


@promise("tools:resources-own")
async def test_tools_of_a_server_that_have_these_names_stay_its_own(opened, raw, tmp_path):
    own = {"name": "resources_read", "inputSchema": {"type": "object"}}
    answers = {"resources_read": {"result": {"content": [{"type": "text", "text": "mine"}]}}}
    entry = raw(handshake=OFFERS, methods={"resources/list": {"": {"resources": [PLAN]}}}, tools=[own], answers=answers)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["raw.resources_read"]
        assert definition.tool.safety is Safety.RESTRICTED_WRITE
        assert (await call(toolbox, "raw.resources_read")).data == "mine"


@promise("tools:resources-own")
async def test_a_server_that_has_nothing_but_resources_is_a_server_all_the_same(opened, tmp_path, raw):
    entry = raw(
        handshake={"capabilities": {"resources": {}}},
        methods={"resources/list": {"": {"resources": [PLAN]}}, "resources/read": {"a://plan": {"contents": []}}},
    )
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert (sorted(catalog.definitions), catalog.unavailable) == (["raw.resources_list", "raw.resources_read"], {})
        assert "without contents" in (await read(toolbox, "a://plan")).error


TWO_BYTES = hashlib.sha256(b"\xfb\xff").hexdigest()
READ = {
    "a mime type with a charset": ({"contents": [{"mimeType": "text/plain; charset=utf-8", "text": "t"}]}, "t"),
    "JSON": ({"contents": [{"mimeType": "application/json", "text": '{"a": [1]}'}]}, {"a": [1]}),
    "JSON that is no JSON": ({"contents": [{"mimeType": "application/json", "text": "{a"}]}, "{a"),
    "a text sent as bytes": ({"contents": [{"mimeType": "text/csv; charset=utf-8", "blob": "YSxi"}]}, "a,b"),
    "a text sent as bytes in the letters of URLs": (
        {"contents": [{"mimeType": "text/plain", "blob": "w7_Dvj8_Pg"}]},
        "\u00ff\u00fe??>",
    ),
    "a text sent in a URL": ({"contents": [{"mimeType": "text/csv", "blob": "data:text/csv;base64,YSxi"}]}, "a,b"),
    "bytes in the letters of URLs": (
        {"contents": [{"uri": "a://x", "mimeType": "image/png", "blob": "-_8="}]},
        [{"type": "resource", "uri": "a://x", "mime": "image/png", "bytes": 2, "sha256": TWO_BYTES}],
    ),
    "bytes without padding": (
        {"contents": [{"uri": "a://x", "mimeType": "image/png", "blob": "-_8"}]},
        [{"type": "resource", "uri": "a://x", "mime": "image/png", "bytes": 2, "sha256": TWO_BYTES}],
    ),
    "text that looks like bytes": (
        {"contents": [{"uri": "a://x", "mimeType": "text/plain", "blob": "Hello-World"}]},
        [{"type": "resource", "uri": "a://x", "mime": "text/plain", "bytes": 0, "fault": "it is not base64"}],
    ),
    "a text of whole groups that looks like bytes": (
        {"contents": [{"uri": "a://x", "mimeType": "text/plain", "blob": "well-known-x"}]},
        [{"type": "resource", "uri": "a://x", "mime": "text/plain", "bytes": 0, "fault": "it is not base64"}],
    ),
    "a text in the letters of both": (
        {"contents": [{"uri": "a://x", "mimeType": "image/png", "blob": "a/b-c/d_"}]},
        [{"type": "resource", "uri": "a://x", "mime": "image/png", "bytes": 0, "fault": "it is not base64"}],
    ),
    "a word in place of a picture": (
        {"contents": [{"uri": "a://x", "mimeType": "image/png", "blob": "picture"}]},
        [{"type": "resource", "uri": "a://x", "mime": "image/png", "bytes": 0, "fault": "it is not base64"}],
    ),
    "a URL that holds its data as it is": (
        {"contents": [{"uri": "a://x", "mimeType": "image/png", "blob": "data:text/plain,Hell"}]},
        [{"type": "resource", "uri": "a://x", "mime": "image/png", "bytes": 0, "fault": "it is not base64"}],
    ),
    "one content in place of a list": ({"contents": {"text": "t"}}, "t"),
    "an object for a text": ({"contents": [{"uri": "a://x", "text": {"a": 1}}]}, {"a": 1}),
    "a number for a text": ({"contents": [{"uri": "a://x", "text": 5}]}, "5"),
    "a text under another name": ({"contents": [{"uri": "a://x", "content": "t"}]}, "t"),
    "a list of texts": ({"contents": ["t"]}, "t"),
    "bytes beside a text that is null": ({"contents": [{"mimeType": "text/csv", "text": None, "blob": "YSxi"}]}, "a,b"),
    "no text and no bytes": ({"contents": [{"uri": "a://x"}]}, [{"type": "resource", "uri": "a://x", "mime": None}]),
    "bytes that are no base64": (
        {"contents": [{"uri": "a://x", "mimeType": "image/png", "blob": "no!"}]},
        [{"type": "resource", "uri": "a://x", "mime": "image/png", "bytes": 0, "fault": "it is not base64"}],
    ),
    "half a character": ({"contents": [{"text": "\\ud800"}]}, "\\ud800"),
}


@promise("tools:resources-others")
@pytest.mark.parametrize("case", READ)
async def test_what_servers_answer_is_read_as_it_is_meant(opened, raw, tmp_path, case):
    said, data = READ[case]
    entry = raw(handshake=OFFERS, methods={"resources/read": {"a://x": said}})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        answer = await read(toolbox, "a://x")
        assert (answer.success, answer.data) == (True, data)


@promise("tools:resources-others")
async def test_lists_that_go_round_are_wrong_or_long_have_an_end(opened, raw, tmp_path):
    round_ = {"": {"resources": [PLAN], "nextCursor": "b"}, "b": {"resources": [PLAN, 7], "nextCursor": "b"}}
    many = [{"uriTemplate": f"a://{n}/{{x}}", "name": "n" * 5000} for n in range(2_500)]
    methods = {
        "resources/list": round_,
        "resources/templates/list": {"": {"resourceTemplates": [*many, {"uriTemplate": "a://" + "x" * 10_000}]}},
    }
    async with opened(tmp_path, {"mcpServers": {"raw": raw(handshake=OFFERS, methods=methods)}}) as toolbox:
        found = (await call(toolbox, "raw.resources_list")).data
        assert [entry["uri"] for entry in found["resources"]] == ["a://plan"]
        assert "no end" in found["more_resources"]
        assert len(found["templates"]) == 2_000
        assert "first 2,000" in found["more_templates"]
        assert len(found["templates"][0]["name"]) <= 200
        some = (await call(toolbox, "raw.resources_list", {"contains": "A://12/"})).data
        assert [entry["template"] for entry in some["templates"]] == ["a://12/{x}"]


@promise("tools:resources-others")
async def test_an_address_is_sent_letter_by_letter_and_a_template_is_filled(opened, raw, tmp_path):
    wanted = ["a://b c/Ü", "a://q%2Fx?query=a%20b", "a:%zz"]
    methods = {"resources/read": {uri: {"contents": [{"text": "ok"}]} for uri in wanted}}
    async with opened(tmp_path, {"mcpServers": {"raw": raw(handshake=OFFERS, methods=methods)}}) as toolbox:
        assert (await read(toolbox, wanted[0])).data == "ok"
        assert (await read(toolbox, wanted[2])).data == "ok"
        assert (await read(toolbox, "a://{id}{?query}", id="q/x", query="a b")).data == "ok"
        assert "template" in (await read(toolbox, "a://{", id="1")).error
        assert "no 'a://none'" in (await read(toolbox, "a://none")).error


@promise("tools:resources-dial")
async def test_nothing_but_the_server_reads_an_address(opened, raw, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the worker's own", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        web = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        link = {"type": "resource_link", "uri": web, "name": "page"}
        entry = raw(
            handshake=OFFERS,
            tools=[TOOL],
            answers={"fine": {"result": {"content": [link]}}},
            methods={"resources/read": {"file:///known": {"contents": [{"text": "of the server"}]}}},
        )
        async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
            await call(toolbox, "raw.fine")
            for uri in (web, secret.as_uri(), str(secret)):
                answer = await read(toolbox, uri)
                assert not answer.success
                assert "there is no" in answer.error
            assert (await read(toolbox, "file:///known")).data == "of the server"
        with pytest.raises(BlockingIOError):
            listener.accept()


@promise("tools:resources-changed")
async def test_a_resource_is_read_anew_and_a_list_when_its_server_says_so(opened, raw, tmp_path):
    answers = {
        "fine": {
            "notify": "notifications/resources/list_changed",
            "result": {"content": [{"type": "text", "text": "done"}]},
        }
    }

    def script(text, listed):
        return raw(
            handshake=OFFERS,
            tools=[TOOL],
            answers=answers,
            methods={
                "resources/list": {"": {"resources": listed}},
                "resources/read": {"a://plan": {"contents": [{"text": text}]}},
            },
        )

    async with opened(tmp_path, {"mcpServers": {"raw": script("first", [])}}) as toolbox:
        assert (await read(toolbox, "a://plan")).data == "first"
        script("second", [PLAN])
        assert (await read(toolbox, "a://plan")).data == "second"
        assert "raw.resources_list" not in (await toolbox.catalog("anyone")).definitions
        await call(toolbox, "raw.fine")
        async with asyncio.timeout(10):
            while "raw.resources_list" not in (await toolbox.catalog("anyone")).definitions:
                await asyncio.sleep(0.02)


@promise("tools:prompts")
@EVERY
async def test_prompts_are_found_and_read_as_the_words_of_others(office, provider):
    catalog = await office.catalog("anyone")
    found = [hit.tool for hit in catalog.search("have a desk tidied", providers=[provider])]
    assert f"{provider}.prompt_tidy" in found
    tool = catalog.definitions[f"{provider}.prompt_tidy"].tool
    assert (tool.safety, tool.content) == (Safety.READ_ONLY, "others")
    assert (await call(office, f"{provider}.prompt_tidy", {"desk": "Ana's"})).data == "Tidy Ana's well."


@promise("tools:prompts")
async def test_prompts_that_are_written_otherwise_are_offered_as_far_as_they_make_sense(opened, raw, tmp_path):
    prompts = [
        {"name": "plain", "arguments": [{"name": "n", "required": True}, {"description": "no name"}, 7]},
        {"name": "plain", "description": "again"},
        {"description": "no name"},
        "text",
        {"name": "empty", "arguments": None},
        *({"name": f"p{n}"} for n in range(200)),
    ]
    told = [{"role": "user", "content": {"type": "text", "text": "Say it."}}, {"role": "assistant", "content": "Yes."}]
    methods = {
        "prompts/list": {"": {"prompts": prompts}},
        "prompts/get": {"plain": {"messages": told}, "empty": {"messages": []}},
    }
    entry = raw(handshake={"capabilities": {"tools": {}, "prompts": {}}}, methods=methods)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert len(catalog.definitions) == 100
        assert catalog.definitions["raw.prompt_plain"].parameters["required"] == ["n"]
        assert (await call(toolbox, "raw.prompt_plain", {"n": "1"})).data == "Say it.\nYes."
        assert "without messages" in (await call(toolbox, "raw.prompt_empty")).error
        assert "no 'p0'" in (await call(toolbox, "raw.prompt_p0")).error


@promise("tools:prompts")
async def test_prompts_of_further_pages_are_offered_up_to_a_hundred(opened, raw, tmp_path):
    first, second = ([{"name": f"p{n}"} for n in range(begin, begin + 70)] for begin in (0, 70))
    pages = {"": {"prompts": first, "nextCursor": "b"}, "b": {"prompts": second}}
    entry = raw(handshake={"capabilities": {"tools": {}, "prompts": {}}}, methods={"prompts/list": pages})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        found = (await toolbox.catalog("anyone")).definitions
    assert sorted(found) == sorted(f"raw.prompt_p{n}" for n in range(100))
