import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot
from structlog.testing import capture_logs

from backstay.errors import OutcomeUnknown, ToolboxInvalid, ToolChanged, ToolUnavailable
from backstay.tools.tool import Safety
from tests.requirements import promise
from tests.sizes import spread

PLUGINS = Path(__file__).parent / "plugins"
RATIO = {"source": "s", "ratio": 1.5, "fast": True}


async def intent():
    """Stand for a committed intent."""


@pytest.fixture
def plugged(opened, tmp_path):
    """Open a toolbox with copies of some plugins."""

    def open_with(*names, **configuration):
        environment = configuration.pop("environment", {})
        jail = {name: configuration.pop(name) for name in ("confinement",) if name in configuration}
        for name in names:
            shutil.copytree(PLUGINS / name, tmp_path / "plugins" / name, dirs_exist_ok=True)
        return opened(tmp_path, {"plugins": "plugins/", **configuration}, **jail, **environment)

    return open_with


async def call(toolbox, name, arguments, *, deadline_s=60, before_send=intent, **options):
    definition = (await toolbox.catalog("anyone")).definitions[name]
    fault = definition.validate(arguments)
    assert fault is None, fault
    return await toolbox.call(definition, arguments, deadline_s=deadline_s, before_send=before_send, **options)


@promise("plugins:schema")
async def test_a_plugins_schema_is_what_its_own_parser_takes(plugged, tmp_path):
    async with plugged("convert") as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["convert.run"]
    assert not (tmp_path / "plugins/convert/ran").exists()
    assert definition.description == "Convert cli.py files."
    assert definition.tool.safety is Safety.RESTRICTED_WRITE
    assert definition.parameters == snapshot(
        {
            "type": "object",
            "properties": {
                "source": {"type": "string", "description": "what to read"},
                "extra": {"type": "array", "items": {"type": "string"}, "description": "what else to read"},
                "count": {"type": "integer", "minimum": 1, "maximum": 99, "description": "how many, 3", "default": 3},
                "ratio": {"type": "number"},
                "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "level": {"type": "string", "enum": ["low", "high"]},
                "pair": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
                "names": {"type": "array", "items": {"type": "string"}, "minItems": 1, "default": ["a"]},
                "tag": {"type": "array", "items": {"type": "string"}},
                "point": {
                    "type": "array",
                    "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
                },
                "more": {"type": "array", "items": {"type": "string"}},
                "log": {
                    "anyOf": [{"type": "string"}, {"const": True, "description": "the option alone, without a value"}]
                },
                "no_store": {"type": "boolean"},
                "cache": {"type": "boolean"},
                "v": {"type": "integer", "minimum": 0, "maximum": 100},
                "filter": {},
                "strict": {"type": "boolean"},
                "key": {"type": "string", "description": "None"},
                "fast": {"type": "boolean"},
                "within": {"type": "integer"},
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": 600.0,
                    "description": "for how many seconds the program may run",
                },
            },
            "additionalProperties": False,
            "required": ["source", "ratio"],
            "if": {},
            "then": {
                "allOf": [
                    {
                        "not": {
                            "allOf": [
                                {"properties": {"fast": {"const": True}}, "required": ["fast"]},
                                {"required": ["within"]},
                            ]
                        }
                    },
                    {
                        "anyOf": [
                            {"properties": {"fast": {"const": True}}, "required": ["fast"]},
                            {"required": ["within"]},
                        ]
                    },
                ]
            },
        }
    )


@promise("plugins:call")
async def test_every_kind_of_argument_reaches_the_program_as_it_was_meant(plugged):
    given = {
        **RATIO,
        "source": "-x",
        "extra": ["--fast", "-1", ""],
        "count": 7,
        "color": "blue",
        "level": "high",
        "pair": [-1, 2],
        "names": ["x", "y"],
        "tag": ["-a", "--b=c"],
        "point": [[-0.0000001, 2]],
        "more": ["-m", "n"],
        "log": True,
        "no_store": True,
        "cache": False,
        "v": 2,
        "filter": {"a": [1, None]},
        "strict": False,
    }
    async with plugged("convert") as toolbox:
        answer = await call(toolbox, "convert.run", given)
    assert answer.data == snapshot(
        {
            "source": "-x",
            "extra": ["--fast", "-1", ""],
            "count": 7,
            "ratio": 1.5,
            "color": "blue",
            "level": "high",
            "pair": [-1, 2],
            "names": ["x", "y"],
            "tag": ["-a", "--b=c"],
            "point": [[-1e-07, 2.0]],
            "more": ["-m", "n"],
            "log": "all",
            "store": False,
            "caching": False,
            "v": 2,
            "filter": {"a": [1, None]},
            "strict": False,
            "secret": None,
            "key": None,
            "fast": True,
            "within": None,
        }
    )


@promise("plugins:values")
@pytest.mark.parametrize("value", spread(["-v", "--fast", "", "-5", "=", "a=b", "@here", "-x y", "ä\n'\"$(x)`"], 4))
async def test_no_value_becomes_an_option_or_a_file(plugged, tmp_path, value):
    async with plugged("convert", "remote") as toolbox:
        (tmp_path / "plugins/convert/here").write_text("--fast", encoding="utf-8")
        option = await call(toolbox, "convert.run", {**RATIO, "key": value, "tag": [value], "names": [value]})
        place = await call(toolbox, "convert.run", {**RATIO, "source": value})
        below = await call(toolbox, "remote.add", {"name": value, "config": value, "config_2": value})
    assert [option.data[name] for name in ("key", "tag", "names", "fast", "v")] == [value, [value], [value], True, 0]
    assert (below.data["name"], below.data["config"], below.data["verbose"]) == (value, value, False)
    if value == "@here":
        assert (place.success, place.error.partition(":")[0]) == (False, "source")
    else:
        assert place.data["source"] == str(Path(value))


@promise("plugins:values")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"names": ["a", "-v"]}, "names: of several values none may begin with '-'"),
        ({"names": ["a", "@f"]}, "names: a value must not begin with '@'"),
        ({"key": "--"}, "key: '--' cannot be a value"),
        ({"source": "--"}, "source: '--' cannot be a value"),
        ({"key": "nul\0"}, "key: a value cannot hold a null character"),
        ({"key": "\ud800"}, "key: a value has characters that cannot be encoded as UTF-8"),
        ({"key": "x" * 200_000}, "key: a value has 200000 bytes"),
        ({"fast": True, "within": 3}, "exclude each other"),
    ],
)
async def test_what_no_command_line_can_say_is_refused_before_anything_runs(plugged, tmp_path, given, said):
    async with plugged("convert") as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["convert.run"]
        answer = await toolbox.call(definition, {**RATIO, **given}, deadline_s=60, before_send=intent)
    assert not answer.success
    assert said in answer.error
    assert not (tmp_path / "plugins/convert/ran").exists()


@promise("plugins:schema")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"count": 100}, "arguments.count"),
        ({"count": "7"}, "arguments.count: must be integer"),
        ({"color": "green"}, "arguments.color: must be one of"),
        ({"pair": [1]}, "arguments.pair"),
        ({"names": []}, "arguments.names"),
        ({"within": 3}, "arguments: does not fit not"),
        ({"fast": False}, "arguments.fast: must be true"),
        ({"secret": "s"}, "unknown field 'secret'"),
        ({"ratio": None}, "arguments.ratio: must be number"),
    ],
)
async def test_arguments_that_the_parser_would_refuse_do_not_fit_the_schema(plugged, given, said):
    async with plugged("convert") as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["convert.run"]
    assert definition.validate(RATIO) is None
    assert definition.validate({"source": "s", "ratio": 1, "within": 3, "fast": False}) is None
    assert said in definition.validate({**RATIO, **given})


@promise("plugins:subcommands")
async def test_each_last_subcommand_is_a_tool_that_takes_what_stands_before_it_too(plugged):
    async with plugged("remote") as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert sorted(catalog.definitions) == ["remote.add", "remote.end", "remote.key.rotate"]
        add = catalog.definitions["remote.add"]
        assert add.description == "Add one remote."
        assert catalog.definitions["remote.key.rotate"].description == "key.rotate: make a new key"
        assert list(add.parameters["properties"]) == ["verbose", "config_2", "name", "config", "timeout"]
        answer = await call(toolbox, "remote.add", {"name": "n", "config": "own", "config_2": "all", "verbose": True})
        assert answer.data["argv"] == ["--verbose", "--config=all", "add", "--config=own", "--", "n"]
        assert (await call(toolbox, "remote.key.rotate", {})).data["sub"] == "rotate"


@promise("plugins:help")
async def test_a_program_without_a_parser_is_known_by_its_help_and_takes_words(plugged):
    async with plugged("words") as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["words.run"]
        assert definition.description == "usage: words WORD...\n\nSay the words back."
        assert (await call(toolbox, "words.run", {"args": ["a b", "--x"]})).data == ["a b", "--x"]


@promise("plugins:broken")
async def test_a_plugin_that_cannot_be_loaded_is_a_reason_and_leaves_the_others_alone(plugged, tmp_path):
    async with plugged("broken", "words") as toolbox:
        catalog = await toolbox.catalog("anyone")
        missing = "cli.py cannot be loaded: ModuleNotFoundError: No module named 'a_module_that_is_nowhere' "
        assert catalog.unavailable == {
            "broken": f"{missing}(its parser is read in a jail, without a network and in a copy of its "
            "folder, unless `jail` is false)"
        }
        assert list(catalog.definitions) == ["words.run"]
        (tmp_path / "plugins/broken/cli.py").write_text("import argparse; argparse.ArgumentParser().parse_args()")
        catalog = await toolbox.catalog("anyone")
        assert (catalog.unavailable, list(catalog.definitions)) == ({}, ["broken.run", "words.run"])


@promise("plugins:outcome")
@pytest.mark.parametrize(
    ("how", "success", "data", "error"),
    [
        ("text", True, "only words", None),
        ("nothing", True, None, None),
        ("error", False, None, "exit code 1: first line / the disk is full"),
        ("json-error", False, {"error": "quota reached", "left": 0}, "exit code 4: quota reached"),
    ],
)
async def test_json_or_text_is_the_answer_and_another_exit_code_the_tools_own_error(plugged, how, success, data, error):
    async with plugged("remote") as toolbox:
        answer = await call(toolbox, "remote.end", {"how": how})
    assert (answer.success, answer.data, answer.error) == (success, data, error)


@promise("plugins:unknown")
@pytest.mark.parametrize(("how", "deadline_s"), [("killed", 60), ("hang", 3)])
async def test_a_program_that_is_ended_in_the_middle_is_unknown(plugged, how, deadline_s):
    async with plugged("remote") as toolbox:
        await toolbox.catalog("anyone")
        with pytest.raises(OutcomeUnknown) as caught:
            await call(toolbox, "remote.end", {"how": how}, deadline_s=deadline_s)
    assert bool(caught.value.facts.get("timed_out")) is (how == "hang")


@promise("plugins:unavailable")
async def test_a_plugin_that_cannot_start_is_unavailable_and_the_intent_is_not_committed(plugged):
    committed = []

    async def commit():
        committed.append(True)

    async with plugged("words", providers={"words": {"python": "no-such-python"}}) as toolbox:
        assert "'no-such-python' was not found" in (await toolbox.catalog("anyone")).unavailable["words"]
    async with plugged("words") as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["words.run"]
        (provider,) = toolbox._providers.values()
        shutil.rmtree(provider._plugin.folder)
        with pytest.raises((ToolUnavailable, ToolChanged)):
            await toolbox.call(definition, {}, deadline_s=60, before_send=commit)
    assert committed == []


@promise("plugins:changed")
async def test_a_plugin_that_changed_after_the_ruling_is_looked_at_again(plugged, tmp_path):
    async with plugged("words") as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["words.run"]
        (tmp_path / "plugins/words/cli.py").write_text("import argparse; argparse.ArgumentParser().parse_args()")
        with pytest.raises(ToolChanged):
            await toolbox.call(definition, {}, deadline_s=60, before_send=intent)


@promise("plugins:serial")
async def test_calls_of_one_plugin_run_one_after_another(plugged):
    async with plugged("remote") as toolbox:
        assert (await toolbox.catalog("anyone")).definitions["remote.end"].tool.serial
        answers = await asyncio.gather(*(call(toolbox, "remote.end", {"how": "twice"}) for _ in range(3)))
    assert [answer.success for answer in answers] == [True] * 3


@promise("plugins:environment")
async def test_a_plugin_sees_its_own_variables_and_the_effect_and_no_default_tells_them(plugged, tmp_path):
    providers = {name: {"env": {"CONVERT_KEY": "${THE_KEY}"}} for name in ("remote", "convert")}
    secret = 'k"' * 12
    async with plugged(
        "remote", "convert", providers=providers, environment={"THE_KEY": secret, "OTHER": "x"}
    ) as toolbox:
        answer = await call(toolbox, "remote.end", {"how": "environment"}, effect_id="run/1")
        assert secret in toolbox.secrets
        shown = json.dumps((await toolbox.catalog("anyone")).definitions["convert.run"].parameters)
    own = {"PATH", "CONVERT_KEY", "BACKSTAY_EFFECT_ID"}
    assert set(answer.data["environment"]) - {"LC_CTYPE"} == own
    assert answer.data["environment"]["CONVERT_KEY"] == secret
    assert answer.data["environment"]["BACKSTAY_EFFECT_ID"] == "run/1"
    assert answer.data["folder"] == str(tmp_path / "plugins/remote")
    assert "***" in shown
    assert 'k\\"k' not in shown


@promise("tools:shown-paths")
async def test_a_default_that_is_a_path_is_shown_as_it_is(plugged, tmp_path):
    place = str(tmp_path / "mail.db")
    async with plugged("convert", providers={"convert": {"env": {"CONVERT_KEY": place}}}) as toolbox:
        shown = json.dumps((await toolbox.catalog("anyone")).definitions["convert.run"].parameters)
    assert place in shown
    assert "***" not in shown


@promise("plugins:configuration")
async def test_settings_of_plugins_are_checked_with_field_and_fix(plugged, tmp_path):
    server = {"m": {"command": "x"}}
    for names, configuration, said in (
        (
            ["words"],
            {"providers": {"wrds": {}}},
            "providers.wrds: there is no such server, plugin or module (known: words)",
        ),
        ([], {"mcpServers": server, "providers": {"m": {"jail": True}}}, "providers.m.jail: this is for plugins"),
        (["words"], {"mcpServers": {"words": {"command": "x"}}}, "the folder 'words' has the name of an entry"),
        (["words"], {"providers": {"words": {"jail": True, "python": "p"}}}, "providers.words.python: a jail has"),
    ):
        with pytest.raises(ToolboxInvalid) as caught:
            async with plugged(*names, **configuration):
                pass
        assert said in str(caught.value)
    (tmp_path / "plugins/a.b").mkdir()
    (tmp_path / "plugins/a.b/cli.py").touch()
    with pytest.raises(ToolboxInvalid, match="no usable name"):
        async with plugged():
            pass


@promise("plugins:jail")
@pytest.mark.parametrize("jail", [True, None])
async def test_a_plugin_that_must_be_jailed_is_never_run_without_a_jail(plugged, jail):
    async with plugged("words", providers={"words": {"jail": jail}}, confinement=None) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert "this machine has none" in catalog.unavailable["words"]
        assert catalog.definitions == {}


@promise("plugins:help-jail")
@pytest.mark.parametrize(
    ("folder", "entry"),
    [("plugins", False), ({"folder": "plugins", "jail": False}, None), ({"folder": "plugins", "jail": True}, False)],
)
async def test_an_operator_lets_a_plugin_or_all_of_them_run_without_any_jail(plugged, folder, entry):
    providers = {"words": {"jail": entry}}
    async with plugged("words", plugins=folder, providers=providers, confinement=None) as toolbox:
        assert (await call(toolbox, "words.run", {"args": ["a"]})).data == ["a"]


@promise("plugins:users")
async def test_plugins_are_granted_to_users_like_servers(plugged):
    users = {"ana": {"providers": ["words"]}, "*": {"providers": []}}
    async with plugged("words", users=users) as toolbox:
        assert list((await toolbox.catalog("ana")).definitions) == ["words.run"]
        assert (await toolbox.catalog("bo")).definitions == {}


@promise("plugins:broken")
@pytest.mark.thorough
async def test_the_command_line_lists_what_plugins_can_do_and_says_which_cannot_be_used(tmp_path):
    for name in ("broken", "words"):
        shutil.copytree(PLUGINS / name, tmp_path / "plugins" / name)
    (tmp_path / "toolbox.json").write_text('{"plugins": "plugins"}', encoding="utf-8")
    environment = {"PATH": os.defpath, "PYTHONPATH": str(Path(__file__).parents[2]), "BACKSTAY_TRUSTED": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "backstay", "tools", "list"),
        cwd=tmp_path,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    listed, said = await process.communicate()
    assert process.returncode == 0, said
    assert [line.split()[:2] for line in listed.decode().splitlines()] == [["words.run", "restricted_write"]]
    assert "broken is not available: cli.py cannot be loaded: ModuleNotFoundError" in " ".join(said.decode().split())


# omni-us/jsonargparse#427, ThomasWaldmann/argparse#7 (choices that compare), python/cpython#15566 (containers)
ODD_CHOICES = [
    ({"share": 0.5}, "0.5"),
    ({"share": 5.5}, "5.5"),
    ({"even": 4}, "4"),
    ({"even": 12}, "12"),
    ({"between": 0.5}, "0.5"),
    ({"case": "HIGH"}, "HIGH"),
    ({"text": "b"}, "b"),
    ({"anything": "b"}, "b"),
    ({"broken": "a"}, "a"),
    ({"color": "blue"}, "Color.BLUE"),
    ({"kind": "red"}, "Color.RED"),
    ({"level": "HIGH"}, "2"),
    ({"day": "2026-01-02"}, "2026-01-02"),
    ({"amount": "1.50"}, "1.50"),
    ({"path": "a/b"}, "a/b"),
    ({"size": "m"}, "m"),
    ({"step": 15}, "15"),
]


@promise("plugins:odd-choices")
async def test_choices_and_defaults_that_only_the_program_knows_are_left_to_it(plugged):
    async with plugged("odd") as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["odd.run"]
        for arguments, shown in ODD_CHOICES:
            answer = await call(toolbox, "odd.run", arguments)
            assert answer.success, (arguments, answer.error)
            assert f"'{next(iter(arguments))}': '{shown}'" in answer.data
        refused = await call(toolbox, "odd.run", {"share": 3.0})
        assert (refused.success, "invalid choice" in refused.error) == (False, True)
    assert definition.description.startswith("cli.py: mix 100 % ?")
    known = definition.parameters["properties"]
    assert known["text"] == {"type": "string", "description": "Not ? a text."}
    assert known["share"] == {"type": "number", "description": "A share. (one of: 0.0 to 1.0, 5.0 to 6.0)"}
    enums = {name: rule["enum"] for name, rule in known.items() if "enum" in rule}
    assert enums == {
        "color": ["red", "blue"],
        "kind": ["red", "blue"],
        "level": ["LOW", "HIGH"],
        "day": ["2026-01-02"],
        "amount": ["0.50", "1.50"],
        "path": ["a/b"],
        "size": ["s", "m"],
        "step": list(range(0, 100, 5)),
    }
    defaults = {name: rule["default"] for name, rule in known.items() if "default" in rule}
    assert defaults == {"color": "red", "path": "a/b", "set": ["a", "b"]}
    assert "0x7f" not in json.dumps(definition.parameters)


@promise("plugins:outcome")
async def test_text_on_stdout_stays_text_unless_it_is_an_object_or_a_list(plugged):
    async with plugged("odd") as toolbox:
        for said in ("3.10", "12e4567", "007", "null", "1.50", '"quoted"', "12345678901234567.89"):
            assert (await call(toolbox, "odd.run", {"say": said})).data == said
        assert (await call(toolbox, "odd.run", {"say": '{"a": [1]}'})).data == {"a": [1]}


OPEN = {"folder": "plugins/", "jail": False}
PARSED = "import argparse, json, os\nparser = argparse.ArgumentParser()\n"
SHOWN = "print(json.dumps(vars(parser.parse_args())))\n"


def written(folder, name, *lines, shown=SHOWN):
    """Write a plugin whose parser takes what these lines add, and which prints what it was given."""
    place = folder / "plugins" / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "cli.py").write_text(PARSED + "\n".join(lines) + "\n" + shown, encoding="utf-8")
    return place


@promise("plugins:whole-folder")
async def test_a_change_below_the_folder_of_a_plugin_is_seen_while_the_toolbox_is_open(plugged, tmp_path):
    place = written(tmp_path, "nested", "from below.options import OPTION", "parser.add_argument(OPTION)")
    (place / "below").mkdir()
    (place / "below/loop.py").symlink_to("loop.py")
    async with plugged(plugins=OPEN) as toolbox:
        for name in ("first", "second"):
            (place / "below/options.py").write_text(f"OPTION = '--{name}'\n", encoding="utf-8")
            definition = (await toolbox.catalog("anyone")).definitions["nested.run"]
            assert list(definition.parameters["properties"]) == [name, "timeout"]
            assert (await call(toolbox, "nested.run", {name: "x"})).data == {name: "x"}


@promise("plugins:environment")
async def test_the_words_of_a_parser_are_usable_though_variables_have_them_for_values(plugged, tmp_path):
    written(
        tmp_path,
        "regional",
        "parser.add_argument('--fast-mode', action='store_true', help='not ' + os.environ['THE_KEY'])",
        "parser.add_argument('--region', choices=['eu-central', 'us-east'], default='eu-central', help='where')",
        "parser.add_argument('--account', choices=[os.environ['THE_KEY'], 'none'])",
        "parser.add_argument('--number', type=int, default=12345678, choices=[12345678, 1])",
        "parser.add_subparsers(dest='command').add_parser('production')",
    )
    env = {"MODE": "fast-mode", "REGION": "eu-central", "STAGE": "production", "NUMBER": "12345678"}
    providers = {"regional": {"env": {**env, "THE_KEY": "s3cr3t-value-9"}}}
    async with plugged(plugins=OPEN, providers=providers) as toolbox:
        given = {"fast_mode": True, "region": "eu-central", "number": 12345678}
        answer = await call(toolbox, "regional.production", given)
        shown = (await toolbox.catalog("anyone")).definitions["regional.production"].parameters["properties"]
    assert answer.data == {**given, "command": "production", "account": None}
    assert shown["region"] == {"type": "string", "description": "where (one of: ***, us-east)", "default": "***"}
    assert shown["account"] == {"type": "string", "description": "(one of: ***, none)"}
    assert shown["number"] == {"type": "integer", "description": "(one of: ***, 1)"}
    assert "s3cr3t" not in json.dumps(shown)


@promise("plugins:values")
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("nul\0", "args: a value cannot hold a null character"),
        ("\ud800", "args: a value has characters that cannot be encoded as UTF-8"),
        ("x" * 200_000, "args: a value has 200000 bytes"),
    ],
)
async def test_words_that_no_command_line_can_say_are_refused_for_a_program_without_a_parser(plugged, word, said):
    async with plugged("words", plugins=OPEN) as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["words.run"]
        answer = await toolbox.call(definition, {"args": ["a", word]}, deadline_s=60, before_send=intent)
        assert (await call(toolbox, "words.run", {"args": ["--", "-x"]})).data == ["--", "-x"]
    assert not answer.success
    assert said in answer.error


@promise("plugins:call")
async def test_an_option_that_extends_a_list_by_several_values_is_given_once_for_each_group(plugged, tmp_path):
    written(tmp_path, "pairs", "parser.add_argument('--pair', action='extend', nargs=2, type=int)")
    async with plugged(plugins=OPEN) as toolbox:
        assert (await call(toolbox, "pairs.run", {"pair": [1, -2, 3, 4]})).data == {"pair": [1, -2, 3, 4]}
        refused = await call(toolbox, "pairs.run", {"pair": [1, 2, 3]})
    assert not refused.success
    assert "pair: give 2 values, or several times as many" in refused.error


@promise("plugins:values-read-twice")
@pytest.mark.parametrize("method", ["parse_intermixed_args", "parse_known_intermixed_args"])
async def test_no_value_becomes_an_option_of_a_parser_that_reads_its_words_twice(plugged, tmp_path, method):
    # python/cpython#58399: the second pass does not see the `--` of the first
    written(
        tmp_path,
        "mixed",
        "parser.add_argument('names', nargs='*')",
        "parser.add_argument('--out')",
        "parser.add_argument('--force', action='store_true')",
        shown=f"given = parser.{method}()\nprint(json.dumps(vars(given[0] if isinstance(given, tuple) else given)))\n",
    )
    async with plugged(plugins=OPEN) as toolbox:
        for names in (["a", "--out=x", "--force"], ["--force"]):
            refused = await call(toolbox, "mixed.run", {"names": names})
            assert (refused.success, refused.error) == (
                False,
                "names: a value must not begin with '-', as an option does",
            )
        answer = await call(toolbox, "mixed.run", {"names": ["a b", "-5", "="], "out": "--force"})
    assert answer.data == {"names": ["a b", "-5", "="], "out": "--force", "force": False}


FIRST = "first = argparse.ArgumentParser(add_help=False)"
LOOKS = "known, rest = first.parse_known_args()"


@promise("plugins:first-parser")
async def test_a_parser_that_only_looks_for_a_settings_file_is_not_taken_for_the_programs_own(plugged, tmp_path):
    written(
        tmp_path,
        "recipe",
        FIRST,
        "first.add_argument('--config')",
        LOOKS,
        "parser = argparse.ArgumentParser(parents=[first], description='Sort.')",
        "parser.add_argument('names', nargs='*')",
        "parser.set_defaults(config=known.config)",
        shown="print(json.dumps(vars(parser.parse_args(rest))))\n",
    )
    async with plugged() as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["recipe.run"]
        answer = await call(toolbox, "recipe.run", {"names": ["a", "-5"], "config": "--x"})
        # The first parser would take it, too.
        refused = await call(toolbox, "recipe.run", {"names": ["a", "--config=x"]})
    assert definition.description == "Sort."
    assert list(definition.parameters["properties"]) == ["config", "names", "timeout"]
    assert answer.data == {"names": ["a", "-5"], "config": "--x"}
    assert (refused.success, "names: a value must not begin with '-'" in refused.error) == (False, True)


@promise("plugins:first-parser")
@pytest.mark.parametrize(
    ("lines", "known"),
    [
        (("first.add_argument('--size')", LOOKS, "print('usage: other' if '--help' in rest else rest)"), "args"),
        (("first.add_argument('--size')", LOOKS, "print('sorted', rest)"), "size"),
        (("first.add_argument('--size')", LOOKS, "raise ValueError(rest)"), "size"),
        (("first.add_argument('size')", LOOKS, "print('sorted', rest)"), "size"),
        (("first.add_argument('--size')", LOOKS, "print('sorted', flush=True); os._exit(0)"), "size"),
        (("first.add_argument('--size')", LOOKS, "print('usage: other', flush=True); os._exit(0)"), "args"),
        (("first.add_argument('--size')", "first.parse_known_args([])", "parser.add_argument('--own')"), "own"),
    ],
    ids=["passed on", "alone", "fails", "demands", "exits", "exits with help", "of no command line"],
)
async def test_a_parser_without_help_is_the_programs_own_unless_help_or_another_one_follows(
    plugged, tmp_path, lines, known
):
    written(tmp_path, "first", FIRST, *lines, shown="parser.parse_args() if '--own' in parser.format_help() else 0\n")
    async with plugged() as toolbox:
        definition = (await toolbox.catalog("anyone")).definitions["first.run"]
    assert list(definition.parameters["properties"]) == [known, "timeout"]


@promise("plugins:first-parser")
@pytest.mark.parametrize("plugins", [OPEN, "plugins/"], ids=["open", "jailed"])
async def test_what_follows_the_first_parser_runs_in_a_jail_only_when_a_plugin_is_described(plugged, tmp_path, plugins):
    place = written(tmp_path, "first", FIRST, "first.add_argument('--size')", LOOKS, "open('ran', 'w')", shown=SHOWN)
    with capture_logs() as logged:
        async with plugged(plugins=plugins) as toolbox:
            definition = (await toolbox.catalog("anyone")).definitions["first.run"]
    assert not (place / "ran").exists()
    assert list(definition.parameters["properties"]) == (["size", "timeout"] if plugins == OPEN else ["timeout"])
    told = [entry["reason"] for entry in logged if entry["event"] == "plugin.first_parser"]
    assert ["described by its first parser" in reason for reason in told] == ([True] if plugins == OPEN else [])


USAGE = "\n       USAGE: cli.py [flags]\nflags:\n  --name: who"


@promise("plugins:help-anywhere")
@pytest.mark.parametrize(
    ("said", "stream", "code"),
    [
        (USAGE, "stdout", 1),  # absl-py
        ("INFO: Showing help.\n\nNAME\n    cli.py\n\nSYNOPSIS\n    cli.py A <flags>", "stderr", 0),  # python-fire
        ("option --help not recognized\nusage: cli.py [-n NAME]", "stderr", 2),  # getopt
        ("Add numbers.", "stdout", 0),
    ],
    ids=["exit code 1", "stderr", "both", "plain"],
)
async def test_help_is_known_whatever_its_stream_and_exit_code_are(plugged, tmp_path, said, stream, code):
    written(tmp_path, "helpful", f"import sys; print({said!r}, file=sys.{stream}); sys.exit({code})", shown="")
    async with plugged(plugins=OPEN) as toolbox:
        assert (await toolbox.catalog("anyone")).definitions["helpful.run"].description == said.strip()


@promise("plugins:help-anywhere")
@pytest.mark.parametrize(
    ("said", "stream", "code"),
    [
        ("cannot reach the disk", "stdout", 1),
        ("usage error: no disk", "stderr", 1),
        ("waiting", "stderr", 0),
        (USAGE, "stdout", 3),
        (f"{USAGE}\nTraceback (most recent call last):\nValueError: no disk", "stderr", 1),
    ],
)
async def test_a_fault_is_not_taken_for_help(plugged, tmp_path, said, stream, code):
    written(tmp_path, "faulty", f"import sys; print({said!r}, file=sys.{stream}); sys.exit({code})", shown="")
    async with plugged(plugins=OPEN) as toolbox:
        assert "cli.py cannot be loaded" in (await toolbox.catalog("anyone")).unavailable["faulty"]
