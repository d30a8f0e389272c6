"""The tables of the reference and of the pages on operations agree with the code, and all pages with each other."""

import ast
import gc
import re
import tomllib
from dataclasses import fields

import pytest
from pydantic import BaseModel

from activities.endpoints.dialect import Dialect
from activities.endpoints.models_file import EndpointEntry, ModelEntry, ModelsFile, Uses
from backstay import errors
from backstay.approvals.approval import Approval, ApprovalRequest
from backstay.budgets.budget import Budget
from backstay.errors import BackstayError, Final, Transient
from backstay.plans.definition import PlanDefinition
from backstay.plans.review import CheckResult, CheckRule, Review, ReviewRules
from backstay.policies.operators import OPERATORS
from backstay.policies.policy import Policy
from backstay.policies.rule import Rule
from backstay.profile import Profile
from backstay.python_tools.tool import ToolOptions
from backstay.settings import Settings
from backstay.task.plan import Plan, PlanStep
from backstay.task.result import Outcome, Result
from backstay.task.task import Task
from docs import generate_reference
from gateways.terminal.exit_codes import DETACHED, DONE, ENDED, FAILED, USAGE
from tests.docs.blocks import HOUSE, PAGES, names, prose, table
from tests.requirements import promise
from toolbox.configuration.configuration import Configuration, ProviderEntry, PythonEntry, ServerEntry
from toolbox.providers.declaration import Declaration
from workflows.handlers import Handlers
from workflows.messages import Messages

PLACES = tuple(
    f"docs/{name}.md"
    for name in (
        "reference-tasks",
        "reference-decisions",
        "reference-events",
        "reference-files",
        "policy",
        "tools-python",
    )
)
SETTINGS = "docs/settings.md"


def looked_up(heading: str) -> list[list[str]]:
    """The rows below a heading of the reference, on whichever of its pages it is."""
    (page,) = [page for page in PLACES if f"\n{heading}\n" in (HOUSE / page).read_text(encoding="utf-8")]
    return table(page, heading)


def column(heading: str, number: int = 0) -> list[str]:
    return [name for row in looked_up(heading) for name in names(row[number])]


@promise("docs:reference")
@pytest.mark.parametrize(
    ("heading", "noun"),
    [
        ("## Task", Task),
        ("## Budget", Budget),
        ("## Result", Result),
        ("## ApprovalRequest", ApprovalRequest),
        ("## Approval", Approval),
        ("## Plan", Plan),
        ("## Definition", PlanDefinition),
        ("## Review", ReviewRules),
    ],
)
def test_every_field_of_a_noun_is_in_its_table(heading, noun: type[BaseModel]):
    fields = {field.alias or name for name, field in noun.model_fields.items()}

    assert sorted(column(heading)) == sorted(fields)


@promise("docs:reference")
@pytest.mark.parametrize(
    ("head", "noun"),
    [
        ("field of a step", PlanStep),
        ("field of an entry of `mcpServers`", ServerEntry),
        ("field of an entry of `providers`", ProviderEntry),
        ("field of an entry of `python`", PythonEntry),
        ("field of a tool", Declaration),
        ("field of a rule", Rule),
        ("field of a check", CheckRule),
        ("field of a review", Review),
        ("field of a check that was made", CheckResult),
        ("field of an endpoint", EndpointEntry),
        ("field of a dialect", Dialect),
        ("field of a model", ModelEntry),
        ("field of `use`", Uses),
    ],
)
def test_every_field_of_an_inner_noun_is_described(head, noun: type[BaseModel]):
    assert sorted(described(f"| {head} |")) == sorted(field.alias or name for name, field in noun.model_fields.items())


@promise("docs:reference")
def test_every_option_of_a_tool_in_python_is_described():
    assert sorted(described("| option of `@tool` |")) == sorted(field.name for field in fields(ToolOptions))


@promise("docs:reference")
@pytest.mark.parametrize(
    ("heading", "noun", "inner"),
    [
        ("## toolbox.json", Configuration, set()),
        ("## profiles.yaml", Profile, set()),
        ("## policy.yaml", Policy, {"floor"}),
        ("## models.yaml", ModelsFile, set()),
    ],
)
def test_every_field_of_an_operators_file_is_described(heading, noun: type[BaseModel], inner: set[str]):
    fields = {field.alias or name for name, field in noun.model_fields.items()}

    assert sorted(column(heading)) == sorted(fields - inner)


def described(head: str) -> list[str]:
    """The names in the first column of the table with this head."""
    (text,) = [text for page in PLACES if head in (text := (HOUSE / page).read_text(encoding="utf-8"))]
    rows = text.partition(head)[2].partition("\n\n")[0]
    return [name for line in rows.splitlines()[2:] for name in names(line.split("|")[1])]


@promise("docs:defaults")
@pytest.mark.parametrize(("heading", "noun"), [("## Task", Task), ("## Budget", Budget)])
def test_defaults_are_those_of_the_code(heading, noun):
    spelt = {True: "true", False: "false", None: "null"}
    for row in looked_up(heading):
        (name,) = names(row[0])
        field = noun.model_fields[name]
        default = field.get_default(call_default_factory=True)
        if not isinstance(default, BaseModel):
            said = row[1].strip("`")
            known = spelt.get(default, "") if isinstance(default, bool | None) else f'"{default}"'
            numbers = (
                float(said) == default if isinstance(default, int | float) and not isinstance(default, bool) else False
            )
            assert numbers or said == known or (said in {"{}", "[]"} and said == str(default).replace("()", "[]")), (
                f"{name}: {said} is not {default!r}"
            )


@promise("docs:outcomes")
def test_every_outcome_is_explained():
    assert column("Money is a number rounded to a millionth.") == [outcome.value for outcome in Outcome]


@promise("docs:events")
def test_every_event_name_in_the_code_is_in_the_table_and_no_other():
    assert sorted(column("## Events")) == sorted(recorded())


def parsed(path):
    """Parse a module without garbage collection, which Python 3.11 takes for a fault of its parser."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


def recorded() -> set[str]:
    """The names of events, where the code records them."""
    found = set()
    rooms = ("workflows", "activities", "backstay/task")
    for path in [path for room in rooms for path in (HOUSE / room).rglob("*.py")]:
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [node.args[0]] if called in {"record", "_record"} and node.args else []
            given += [
                keyword.value
                for keyword in node.keywords
                if called in {"Event", "EventDraft"} and keyword.arg == "name"
            ]
            found |= {value.value for value in given if isinstance(value, ast.Constant)}
    return found


@promise("docs:errors")
def test_every_error_is_in_the_table_with_its_kind():
    roots = {BackstayError, Final, Transient}
    kinds = {
        name: "final" if kind.final else "transient"
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, BackstayError) and kind not in roots
    }

    page = generate_reference.PAGE.read_text(encoding="utf-8")
    assert {names(row[0])[0]: row[1] for row in looked_up("## Errors")} == kinds
    assert generate_reference.written(page) == page, "run: python -m docs.generate_reference"


@promise("docs:environment")
def test_every_setting_is_in_the_table_with_its_default():
    headings = re.findall(r"^## .+$", (HOUSE / SETTINGS).read_text(encoding="utf-8"), re.MULTILINE)
    listed = [row for heading in headings for row in table(SETTINGS, heading)]
    rows = {names(row[0])[0]: row[1].strip("`") for row in listed}
    expected = {}
    for name, field in Settings.model_fields.items():
        variable = field.validation_alias if isinstance(field.validation_alias, str) else f"BACKSTAY_{name.upper()}"
        default = field.get_default(call_default_factory=True)
        if isinstance(default, tuple):
            default = ",".join(default)
        expected[variable] = f"{default:g}" if isinstance(default, float) else str(default) if default else ""

    assert len(rows) == len(listed)
    assert rows == expected


@promise("docs:exit-codes")
def test_every_exit_code_is_in_the_table():
    documented = [int(row[0]) for row in looked_up("## Exit codes")]

    assert documented == sorted({DONE, FAILED, USAGE, DETACHED, *ENDED.values()})


@promise("docs:operators")
def test_every_condition_operator_is_in_the_table():
    assert sorted(column("## Policy conditions")) == sorted(OPERATORS)


@promise("docs:handlers")
def test_every_door_of_a_run_is_in_the_table():
    doors = {
        (kind, definition.name)
        for kind in ("query", "signal", "update")
        for member in (*vars(Handlers).values(), *vars(Messages).values())
        if (definition := getattr(member, f"__temporal_{kind}_definition", None) or getattr(member, "_defn", None))
        and type(definition).__name__ == f"_{kind.capitalize()}Definition"
    }
    documented = {tuple(row[0].replace("`", "").split()) for row in looked_up("## Queries, updates and signals")}

    assert documented == doors


@promise("docs:extras")
def test_every_extra_of_the_package_is_in_the_table():
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert [names(row[0])[0] for row in table("docs/operations.md", "## Install")] == [
        *project["optional-dependencies"]
    ]


@promise("docs:attributes")
def test_search_attributes_are_those_that_workflows_write():
    rows = {
        names(row[0])[0]: row[1]
        for row in table(
            "docs/monitoring.md",
            "A worker registers them if Temporal lets it; runs work without them:",
        )
    }
    text = (HOUSE / "workflows/view.py").read_text(encoding="utf-8")
    kinds = {"keyword": "Keyword", "int": "Int", "float": "Double"}

    assert rows == {name: kinds[kind] for kind, name in re.findall(r'SearchAttributeKey\.for_(\w+)\("(\w+)"\)', text)}


@promise("docs:screenshots")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page):
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    targets = [link.partition("#")[::2] for link in links]
    places = [(page.parent / target if target else page, anchor) for target, anchor in targets]

    assert [place for place, _ in places if not place.exists()] == []
    assert [(place.name, anchor) for place, anchor in places if anchor and anchor not in anchors(place)] == []


def anchors(page) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@promise("docs:tests-named")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page):
    named = re.findall(r"`(tests/[\w/]+\.py)`", page.read_text(encoding="utf-8"))

    assert [name for name in named if not (HOUSE / name).exists()] == []


@promise("docs:prose")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_line_of_prose_holds_one_sentence(page):
    crowded = [
        line
        for line in prose(page).splitlines()
        if not line.startswith("|") and re.search(r"[a-z0-9)`*][.!?] [A-Z]", re.sub(r"^\s*\d+\. ", "", line))
    ]

    assert crowded == []


@promise("operations:descriptions")
def test_every_door_says_what_it_is_for():
    described = {}
    for name, member in {**vars(Handlers), **vars(Messages)}.items():
        definition = getattr(member, "__temporal_query_definition", None) or getattr(member, "_defn", None)
        definition = definition or getattr(member, "__temporal_signal_definition", None)
        if definition is not None:
            described[name] = definition.description

    assert len(described) == 17
    assert [name for name, text in described.items() if not text] == []
