import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.requirements import promise
from toolbox.catalog.catalog import build
from toolbox.catalog.definition import define
from toolbox.providers.declaration import Declaration
from toolbox.providers.listing import ListedTool

LISTED = """
gmail.search_messages Search messages in the mailbox with Gmail query syntax. | query, max_results
gmail.get_message Read one message with its body and the names of its attachments. | message_id
gmail.get_attachment Download one attachment of a message. | message_id, attachment_id
gmail.send_email Send an e-mail to one or more recipients. | to, cc, subject, body
gmail.create_draft Create a draft without sending it. | to, subject, body
gmail.delete_message Move a message to the trash. | message_id
gmail.add_label Put a label on a message. | message_id, label
slack.postMessage Post a message to a channel or a person. | channel, text
slack.listChannels List the public channels of the workspace. | cursor, limit
slack.uploadFile Upload a file and share it in a channel. | channel, content, filename
slack.searchMessages Search messages and files. | query
slack.listUsers List the people of the workspace. | cursor
github.create_issue Open a new issue in a repository. | owner, repo, title, body, labels
github.list_issues List issues of a repository, filtered by state and label. | owner, repo, state
github.create_pull_request Propose to merge one branch into another. | owner, repo, head, base, title
github.merge_pull_request Merge a pull request. | owner, repo, number
github.get_file_contents Read a file or a directory of a repository. | owner, repo, path, ref
github.search_code Search code over all repositories. | q
crm.list_customers List customers with name, address and account manager. | since
crm.list_invoices List invoices with amount, due date and state; overdue ones can be selected. | overdue_days
crm.create_invoice Create an invoice for a customer. | customer_id, amount, due
stripe.refund Give the money of a charge back to the card holder. | charge, amount
stripe.create_charge Charge a card. | amount, currency, source
weather.get_forecast Tell temperature, rain and wind of the next days for a place. | place, days
"""


def listed(provider, name, description="", parameters=()):
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)[:1]}
    found = ListedTool(name=name, description=description, input_schema=schema)
    return define(provider, found, Declaration(), trusted=False, serial=False)


def realistic(**unavailable):
    definitions = []
    for line in LISTED.strip().splitlines():
        head, _, parameters = line.partition(" | ")
        name, _, description = head.partition(" ")
        provider, _, tool = name.partition(".")
        definitions.append(listed(provider, tool, description, parameters.split(", ")))
    return build(definitions, [], unavailable)


CATALOG = realistic()


@promise("tools:search")
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("send an email", "gmail.send_email"),
        ("sending emails to customers", "gmail.send_email"),
        ("gmail attachments", "gmail.get_attachment"),
        ("post to slack channel", "slack.postMessage"),
        ("upload file", "slack.uploadFile"),
        ("list channels", "slack.listChannels"),
        ("pull request merging", "github.merge_pull_request"),
        ("open a new issue", "github.create_issue"),
        ("overdue invoices", "crm.list_invoices"),
        ("give money back", "stripe.refund"),
        ("will it rain tomorrow?", "weather.get_forecast"),
        ("read a file of a repository", "github.get_file_contents"),
        ("refund", "stripe.refund"),
        ("who are the people in our workspace", "slack.listUsers"),
    ],
)
def test_the_best_hit_is_the_tool_a_person_would_take(query, best):
    assert CATALOG.search(query)[0].tool == best


@promise("tools:search")
def test_a_whole_task_finds_all_the_tools_it_needs():
    task = "E-mail every customer with an invoice overdue by 60 days, post the total to the slack channel #finance"
    found = [hit.tool for hit in CATALOG.search(task, limit=8)]
    assert {"crm.list_invoices", "crm.list_customers", "gmail.send_email", "slack.postMessage"} <= set(found)


@promise("tools:search-names")
@pytest.mark.parametrize("query", ["slack.searchMessages", "searchMessages", "SEARCHMESSAGES", "slack__searchMessages"])
def test_an_exact_name_leads(query):
    assert CATALOG.search(query)[0].tool == "slack.searchMessages"


@promise("tools:hit")
def test_a_hit_says_what_a_planner_needs():
    (hit,) = CATALOG.search("send_email", limit=1)
    assert hit.plain() == {
        "provider": "gmail",
        "tool": "gmail.send_email",
        "short_description": "Send an e-mail to one or more recipients.",
        "parameters": {"to": "string", "cc": "string?", "subject": "string?", "body": "string?"},
        "available": True,
        "reason": None,
        "path": "providers/gmail/tools/send_email.json",
        "mcp_tool_name": "send_email",
    }
    (full,) = CATALOG.search("send_email", "full", 1)
    assert full.parameters == CATALOG.definitions["gmail.send_email"].parameters


@promise("tools:search-unavailable")
def test_tools_that_cannot_be_used_now_come_last_and_say_why():
    hits = realistic(gmail="the server does not answer").search("search messages")
    states = [hit.available for hit in hits]
    assert states == sorted(states, reverse=True)
    assert hits[0].tool == "slack.searchMessages"
    assert {hit.reason for hit in hits if hit.provider == "gmail"} == {"the server does not answer"}


@promise("tools:help")
def test_an_empty_query_lists_by_name():
    assert [hit.tool for hit in CATALOG.search(" ", limit=3)] == sorted(CATALOG.definitions)[:3]


@promise("tools:dedupe")
@given(
    query=st.text()
    | st.lists(st.sampled_from(['"', "AND", "OR", "NOT", "NEAR(", ")", "*", "name:", "-", "'", "email"])).map(" ".join)
)
def test_no_query_is_ever_syntax_and_no_tool_comes_twice(query):
    found = [hit.tool for hit in CATALOG.search(query, limit=100)]
    assert len(found) == len(set(found))
    assert found == [hit.tool for hit in CATALOG.search(query, limit=100)]


@promise("tools:hit")
@pytest.mark.parametrize("limit", [-5, 0, 1, 10**9])
def test_a_limit_out_of_range_is_brought_into_it(limit):
    assert 1 <= len(CATALOG.search("message", limit=limit)) <= 100


@promise("tools:search-names")
@pytest.mark.parametrize("name", sorted(CATALOG.definitions))
def test_every_full_name_leads(name):
    assert CATALOG.search(name)[0].tool == name
    assert CATALOG.search(CATALOG.definitions[name].function)[0].tool == name


@promise("tools:search-names")
def test_the_name_of_a_provider_is_searched_too():
    assert {hit.provider for hit in CATALOG.search("slack", limit=5)} == {"slack"}


@promise("tools:search-unavailable")
def test_tools_that_can_be_used_are_found_behind_any_number_that_cannot():
    crowd = [listed("down", f"send_message_{n}", "Send a message.") for n in range(300)]
    catalog = build([*crowd, listed("up", "post", "Post a message.")], [], {"down": "no answer"})
    assert catalog.search("send a message", limit=3)[0].tool == "up.post"


@promise("tools:search-meaning")
def test_meaning_finds_what_shares_no_word_with_the_query_and_fetches_nothing(monkeypatch):
    def refuse(*_):
        raise AssertionError("search wants to use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    tools = [
        listed("pay", "refund", "Give the money of a charge back to the card holder."),
        listed("sky", "forecast", "Tell temperature, rain and wind of the next days."),
        listed("code", "merge", "Merge a pull request."),
    ]
    assert build(tools, [], {}).search("reimburse a customer")[0].tool == "pay.refund"
    assert build(tools, [], {}).search("is snow coming?")[0].tool == "sky.forecast"


@promise("tools:search-meaning")
def test_each_word_of_a_query_is_looked_for_in_each_of_the_first_tools():
    # By its direction alone, get_file_contents is nearer: much of what issues are about pulls create_issue away.
    assert CATALOG.search("report a bug")[0].tool == "github.create_issue"


@promise("tools:search-meaning")
def test_the_names_of_parameters_tell_what_a_tool_is_about():
    tools = [
        listed("a", "read", "Read values.", ["invoice", "customer"]),
        listed("b", "read", "Read values.", ["celsius", "rainfall"]),
    ]
    assert build(tools, [], {}).search("how is the weather?")[0].tool == "b.read"


@promise("tools:search")
@pytest.mark.thorough
async def test_ten_thousand_tools_are_searched():
    nouns = ["invoice", "message", "ticket", "customer", "report", "backup", "device", "order", "page", "branch"]
    definitions = [
        listed(f"p{n % 50}", f"{verb}_{noun}_{n}", f"{verb} one {noun} in system {n}")
        for n, (verb, noun) in enumerate((v, o) for v in ("create", "read", "close", "archive") for o in nouns * 250)
    ]
    catalog = await asyncio.to_thread(build, definitions, [], {})
    assert len(catalog.definitions) == 10_000
    assert catalog.search("archive the backup of system 9005")[0].tool.endswith("archive_backup_9005")
