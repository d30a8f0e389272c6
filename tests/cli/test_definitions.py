"""Definitions at the terminal: list, show, validate, and a run of one; what is wrong names file, field and fix."""

import json
import os
import shutil

import pytest
import pytest_asyncio

from backstay.client import Backstay
from tests.cli.commands import HOUSE, bare, environment_of, forked
from tests.requirements import promise
from tests.serving import served
from tests.sizes import spread
from tests.toolbox.servers import office

EXAMPLES = HOUSE / "examples/definitions"
SEED = {
    "id": "analyze_screenlines",
    "domain": "analysis",
    "action": "get_screenlines",
    "mcp_class": "ModelInspector",
    "mcp_method": "get_screenlines",
    "steps": [{"tool": "ModelInspector.get_screenlines", "params": {"group_name": "${input.group}"}}],
}
STEPS = [{"tool": "mail.list_sent", "params": {}}]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "definitions"
    place.mkdir()
    return place


@pytest.fixture
def run(opened, nursery, folder):
    async def run(*arguments, **more):
        environment = environment_of(opened, BACKSTAY_DEFINITIONS=str(folder), **more)
        return await forked(nursery, *arguments, environment=environment, folder=folder)

    return run


def write(folder, name, definition):
    (folder / name).write_text(definition if isinstance(definition, str) else json.dumps(definition), encoding="utf-8")


@promise("plans:definitions")
async def test_a_definition_runs_with_its_input_and_without_a_model(run, opened, folder):
    shutil.copy(EXAMPLES / "tell_customer.yaml", folder)
    asked = len(opened.model.requests)
    given = '{"to": "ana@defined.example", "subject": "the fair"}'
    done = await run("run", "--definition", "tell_customer", "--input", given, "--yes", "--output", "json")
    assert done.code == 0, done.err
    assert len(opened.model.requests) == asked
    query = "SELECT recipient, subject, body FROM sent WHERE recipient = ?"
    (sent,) = opened.mailbox.rows(query, "ana@defined.example")
    assert sent == ("ana@defined.example", "the fair", "Hello, this is about the fair.")


@promise("plans:look")
async def test_definitions_are_listed_and_shown_as_text_and_json(run, folder):
    shutil.copy(EXAMPLES / "tell_customer.yaml", folder)
    write(folder, "seed.json", json.dumps(SEED | {"offer": True}, indent="\t"))
    os.mkfifo(folder / "pipe.yaml")
    listed = await run("definitions", "list")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["analyze_screenlines", "tell_customer"]
    rows = json.loads((await run("definitions", "list", "--output", "json")).out)
    assert rows[1] == {
        "id": "tell_customer", "version": 1, "title": "Send a customer one message", "domain": "mail", "steps": 2,
        "offer": False, "file": "tell_customer.yaml",
    }  # fmt: skip
    shown = (await run("definitions", "show", "tell_customer")).out
    assert "input.to: string, the customer's address" in shown
    assert "input.body: string, optional" in shown
    seed = json.loads((await run("definitions", "show", "analyze_screenlines", "--output", "json")).out)
    assert seed["steps"][0]["tool"] == "ModelInspector.get_screenlines"
    assert seed["steps"][0]["arguments"] == {"group_name": "${input.group}"}
    assert seed["offered"] == {
        "name": "definitions.analyze_screenlines",
        "description": "analyze_screenlines. Calls ModelInspector.get_screenlines.",
        "parameters": {"type": "object"},
    }


@promise("plans:look")
async def test_one_bad_file_is_told_by_validate_and_hides_no_other(run, folder):
    write(folder, "bad.yaml", "id: bad\nsteps: [{tool: mail.list_sent, argument: {}}]\n")
    write(folder, "good.json", {"id": "good", "steps": STEPS})
    write(folder, "twice.json", {"id": "good", "steps": STEPS})
    checked = await run("definitions", "validate", "--output", "json")
    assert checked.code == 2
    assert [(row["file"], row["id"]) for row in json.loads(checked.out)] == [
        ("good.json", "good"), ("bad.yaml", None), ("twice.json", None),
    ]  # fmt: skip
    told = (await run("definitions", "validate")).out
    assert "bad.yaml: steps.0.argument: unknown field" in told
    assert "twice.json: id: 'good' is also the id in good.json; change one of them" in told
    assert (await run("definitions", "list")).out.split()[0] == "good"
    (folder / "bad.yaml").unlink()
    (folder / "twice.json").unlink()
    assert (await run("definitions", "validate")).code == 0


@promise("plans:bad")
@pytest.mark.parametrize(
    ("definition", "told"),
    spread(
        [
            ("- a\n", "is not a mapping of fields"),
            ("", "is empty"),
            ("id: [", "not valid YAML or JSON"),
            ("a: &a [1]\nb: *missing\n", "not valid YAML or JSON"),
            (
                "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]),
                "longer than",
            ),
            ("[" * 5000, "not valid YAML or JSON"),
            ("id: x\nsteps: [{tool: a.b, params: {x: .nan}}]\n", "not valid YAML or JSON"),
            ({"steps": STEPS}, "id: required field is missing; add it"),
            ({"id": "1 x", "steps": STEPS}, "id: "),
            ({"id": "x"}, "steps: required field is missing; add it"),
            ({"id": "x", "steps": []}, "steps: "),
            ({"id": "x", "steps": [{"params": {}}]}, "steps.0.tool: required field is missing; write provider.tool"),
            (
                {"id": "x", "steps": [{"tool": "a.b", "params": {}, "arguments": {}}]},
                "params and arguments are the same",
            ),
            ({"id": "x", "steps": STEPS, "owner": "me"}, "owner: unknown field"),
            ({"id": "x", "steps": STEPS, "input": {"type": "array"}}, "must be the schema of an object"),
            ({"id": "x", "steps": STEPS, "input": {"type": "object", "properties": 3}}, "write a JSON Schema"),
            ({"id": "x", "steps": STEPS, "input": {"type": "object", "$ref": "#/$defs/a"}}, "refers to '#/$defs/a'"),
            ({"id": "x", "steps": [{"tool": "a.b", "params": {"x": "${steps.0.result.y}"}}]}, "has not run by then"),
            ({"id": "x", "steps": [{"tool": "a.b", "params": {"x": "${other.y}"}}]}, "is not a reference"),
            (
                {
                    "id": "x",
                    "input": {"type": "object", "properties": {"group": {}}},
                    "steps": [{"tool": "a.b", "params": {"x": "${input.grup}"}}],
                },
                "steps.0: ${input.grup}: the schema of `input` has no 'grup'; add it there",
            ),
        ],
        10,
    ),
)
async def test_a_bad_definition_names_file_field_and_fix(run, folder, definition, told):
    write(folder, "it.yaml", definition)
    checked = await run("definitions", "validate")
    assert checked.code == 2
    assert checked.out.startswith("it.yaml: ")
    assert told in checked.out


@promise("plans:bad")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--definition", "gone"], "definition: there is no 'gone' in "),
        (["--definition", "tell_customer"], "--input: input: 'to', 'subject' is required; add it"),
        (
            ["--definition", "tell_customer", "--input", '{"to": 1, "subject": "s"}'],
            "--input: input.to: must be string",
        ),
        (["--definition", "tell_customer", "--input", "{"], "--input: invalid JSON"),
        (
            ["--definition", "tell_customer", "--input", '{"to": "a@b", "subject": "s", "cc": ""}'],
            "--input: input: unknown field 'cc'",
        ),
        (["--definition", "tell_customer", "--plan", "plan.yaml"], "--definition: a definition is a plan"),
    ],
)
async def test_bad_input_for_a_definition_starts_nothing(run, folder, arguments, told):
    shutil.copy(EXAMPLES / "tell_customer.yaml", folder)
    write(folder, "plan.yaml", "steps: [{tool: mail.list_sent}]")
    done = await run("run", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


@promise("plans:dates-as-written")
@pytest.mark.parametrize(
    ("option", "file", "field"), [("--definition", "dated", "params"), ("--plan", "dated.yaml", "arguments")]
)
async def test_a_time_without_quotes_is_sent_as_it_is_written(run, opened, folder, option, file, field):
    to = f"{field}@dated.example"
    sends = f"{{tool: mail.send_email, {field}: {{to: {to}, subject: 2026-01-01, body: 10:30}}}}"
    write(folder, "dated.yaml", f"id: dated\nsteps: [{sends}]" if field == "params" else f"steps: [{sends}]")
    done = await run("run", option, file if field == "params" else str(folder / file), "--yes")
    assert done.code == 0, done.err
    (sent,) = opened.mailbox.rows("SELECT subject, body FROM sent WHERE recipient = ?", to)
    assert sent == ("2026-01-01", "10:30")


@promise("plans:definitions")
async def test_steps_without_a_tool_take_class_and_method_as_its_name(run, folder):
    steps = [{"params": {}}, {"mcp_method": "save", "params": {}}, {"mcp_class": "Other", "mcp_method": "close"}]
    write(folder, "it.json", SEED | {"steps": steps})
    shown = json.loads((await run("definitions", "show", SEED["id"], "--output", "json")).out)
    assert [step["tool"] for step in shown["steps"]] == [
        "ModelInspector.get_screenlines", "ModelInspector.save", "Other.close",
    ]  # fmt: skip


@promise("plans:trust")
async def test_definitions_of_a_folder_that_is_not_trusted_are_not_obeyed(nursery, tmp_path):
    place = tmp_path / "definitions"
    place.mkdir()
    write(place, "it.json", {"id": "it", "steps": STEPS})
    refused = await forked(nursery, "definitions", "list", environment=bare(), folder=tmp_path)
    assert refused.code == 2
    assert "not trusted, so definitions in it is not obeyed" in refused.err
    trusted = bare(BACKSTAY_TRUSTED=str(tmp_path))
    assert (await forked(nursery, "definitions", "list", environment=trusted, folder=tmp_path)).out.startswith("it ")


@pytest_asyncio.fixture
async def office_at():
    """Serve the office once: each command would start one of its own, which takes a second."""
    async with served(office.server.streamable_http_app()) as address:
        yield address


@promise("plans:prompts")
async def test_prompts_of_servers_are_listed_and_run_by_their_names(opened, nursery, tmp_path, office_at):
    toolbox = {"mcpServers": {"office": {"url": f"{office_at}/mcp"}}}
    (tmp_path / "toolbox.json").write_text(json.dumps(toolbox), encoding="utf-8")
    environment = environment_of(opened, BACKSTAY_TOOLBOX=str(tmp_path / "toolbox.json"))

    async def run(*arguments):
        return await forked(nursery, *arguments, environment=environment, folder=tmp_path)

    listed = json.loads((await run("definitions", "list", "--prompts", "--output", "json")).out)
    assert [row["id"] for row in listed] == ["office:tidy"]
    for name, given, why in (("office:none", "{}", "there are: office:tidy"), ("office:tidy", "{}", "--input: ")):
        refused = await run("run", "--definition", name, "--input", given)
        assert refused.code == 2
        assert why in refused.err
    started = await run(
        "run", "--definition", "office:tidy", "--input", '{"desk": "Ana"}', "--detach", "--id", "prompt"
    )
    assert started.code == 0, started.err
    task = await Backstay(opened.client).task_of(
        "prompt", (await Backstay(opened.client).execution("prompt")).first_run_id
    )
    assert 'office.prompt_tidy, with the arguments {"desk":"Ana"}' in task["text"]
