"""Which safety class is proposed for a tool, by what its server says and by its name."""

import pytest

from backstay.tools.tool import Safety
from tests.requirements import promise
from toolbox.catalog.definition import define
from toolbox.catalog.proposal import propose
from toolbox.providers.declaration import Declaration
from toolbox.providers.listing import ListedTool, ToolAnnotations

READ, WRITE = Safety.READ_ONLY, Safety.WRITE_SAFE
READS, ADDS, DESTROYS = (
    ToolAnnotations(read_only=True),
    ToolAnnotations(read_only=False, destructive=False),
    ToolAnnotations(read_only=False, destructive=True),
)
SILENT = ToolAnnotations()


def proposed(name, annotations=SILENT, *, declared=None, trusted=False):
    """Return class, whether it reaches out, and the grounds; None where nothing is proposed."""
    listed = ListedTool(name=name, annotations=annotations)
    definition = define("p", listed, declared or Declaration(), trusted=trusted, serial=False)
    groups, restricted = propose([definition])
    assert len(groups) + len(restricted) <= 1
    return next(((group.safety, group.egress, group.grounds) for group in groups), None)


@promise("tools:proposed")
@pytest.mark.parametrize(
    ("name", "annotations", "expected"),
    [
        ("get_issue", READS, (READ, False, "server")),
        ("getPost", READS, (READ, False, "server")),
        ("pull_request_read", READS, (READ, False, "server")),
        ("anything", READS, (READ, False, "server")),
        ("web_search", READS, (READ, True, "server")),
        ("lookup", ToolAnnotations(read_only=True, open_world=True), (READ, True, "server")),
        ("create_issue", ADDS, (WRITE, False, "server")),
        ("list_files", SILENT, (READ, False, "name")),
        ("searchMessages", SILENT, (READ, False, "name")),
        ("fetch_url", SILENT, (READ, True, "name")),
        ("create_note", SILENT, (WRITE, False, "name")),
    ],
)
def test_a_class_is_proposed_by_what_the_server_says_and_else_by_the_name(name, annotations, expected):
    assert proposed(name, annotations) == expected


@promise("tools:proposed")
@pytest.mark.parametrize(
    ("name", "annotations"),
    [
        ("delete_everything", READS),
        ("sendMoney", READS),
        ("drop-table", ADDS),
        ("get_issue", DESTROYS),
        ("get_or_create", SILENT),
        ("get_and_delete", SILENT),
        ("list_files", ToolAnnotations(read_only=False)),
        ("update_note", SILENT),
        ("query", SILENT),
        ("frobnicate", SILENT),
        ("write_file", SILENT),
        ("\u0440ead_file", SILENT),
    ],
)
def test_nothing_is_proposed_for_what_may_be_dangerous(name, annotations):
    assert proposed(name, annotations) is None


@promise("tools:proposed")
def test_nothing_is_proposed_where_the_operator_has_spoken():
    assert proposed("list_files", declared=Declaration(safety=Safety.RESTRICTED_WRITE)) is None
    assert proposed("list_files", READS, trusted=True) is None


@promise("tools:proposed")
def test_tools_with_the_same_grounds_are_one_group_and_the_rest_is_named():
    listed = [
        ListedTool(name="get_a", annotations=READS),
        ListedTool(name="list_b"),
        ListedTool(name="get_c", annotations=READS),
        ListedTool(name="fetch_d"),
        ListedTool(name="delete_e"),
    ]
    definitions = [define("p", tool, Declaration(), trusted=False, serial=False) for tool in listed]
    groups, restricted = propose(definitions)

    assert [(group.grounds, group.egress, group.tools) for group in groups] == [
        ("name", False, ("list_b",)),
        ("server", False, ("get_a", "get_c")),
        ("name", True, ("fetch_d",)),
    ]
    assert [group.declaration() for group in groups] == [
        {"safety": "read_only"},
        {"safety": "read_only"},
        {"safety": "read_only", "egress": True},
    ]
    assert restricted == ["delete_e"]
