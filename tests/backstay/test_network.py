"""Which hosts a command may reach: what policy says of the hosts that a call names."""

import pytest

from backstay.canonical import digest_of
from backstay.errors import PolicyInvalid
from backstay.policies.accepted import AcceptedLine
from backstay.policies.network import site
from backstay.policies.policy import Policy, rule
from backstay.task.event import call_drafts
from backstay.tools.execution import HostTraffic, JailUse
from backstay.tools.tool import Safety, Tool, ToolResult
from tests.requirements import promise

SHELL = Tool(name="shell.run", safety=Safety.RESTRICTED_WRITE, definition="d1")
OPEN = {"allow": ["shell.run"]}
LISTED = {**OPEN, "network": {"allow": ["example.org", "*.example.net", "example.com:8443"]}}


def ruled(policy, *hosts, tool=SHELL, task=None, **more):
    whole = Policy.admit(policy).tightened_by(task)
    return rule(whole, tool, {"command": "make", "network": list(hosts)}, **more)


@promise("workspaces:network-asks")
def test_a_host_that_the_operator_has_not_listed_is_asked_about_by_name():
    asked = ruled(OPEN, "example.org")
    assert (asked.verdict, asked.rule) == (
        "ask",
        "network: reaches example.org; not in network.allow, which could list it: [example.org]",
    )
    assert ruled(OPEN).verdict == "allow"
    assert ruled(LISTED, "example.org", "files.example.net", "example.com:8443").verdict == "allow"
    others = (
        "example.net",
        "evil-example.org",
        "example.org.evil.test",
        "example.com",
        "example.org:22",
        "x.example.org",
    )
    for other in others:
        asked = ruled(LISTED, "example.org", other)
        assert (asked.verdict, asked.rule.count(f"[{other}]")) == ("ask", 1)


@promise("workspaces:network-asks")
def test_a_list_can_deny_all_others_and_a_task_only_narrows_it():
    closed = {**LISTED, "network": LISTED["network"] | {"others": "deny"}}
    assert ruled(closed, "evil.test").verdict == "deny"
    assert ruled(closed, "example.org").verdict == "allow"
    assert ruled(LISTED, "example.org", task={"network": {"allow": ["example.com"]}}).verdict == "ask"
    assert ruled(LISTED, "example.org", task={"network": {"others": "deny"}}).verdict == "deny"
    assert ruled(LISTED, "evil.test", task={"network": {"allow": ["evil.test"]}}).verdict == "ask"
    assert ruled(LISTED, "example.org", task={"allow": ["shell.run"]}).verdict == "allow"


@promise("workspaces:network-asks")
def test_only_who_accepted_the_very_same_call_has_accepted_its_hosts():
    arguments = {"command": "make", "network": ["example.org"]}
    any_call = AcceptedLine(verdict="allow", scope="always", tool="shell.run", definition="d1")
    same = any_call.model_copy(update={"args_digest": digest_of(arguments)})
    usual = {"default": {"restricted_write": "ask"}}
    assert ruled(usual, "example.org", lines=[same]).verdict == "allow"
    assert ruled(usual, "example.org", lines=[any_call]).verdict == "ask"
    assert ruled(usual, "other.test", lines=[same]).verdict == "ask"
    assert ruled(usual, "example.org", lines=[same.model_copy(update={"definition": "d0"})]).verdict == "ask"


@promise("workspaces:network-names")
@pytest.mark.parametrize(
    "said",
    [
        "127.0.0.1", "169.254.169.254", "[::1]", "::ffff:10.0.0.1", "2130706433", "0x7f.0.0.1", "localhost",
        "box.local", "metadata.google.internal", "1.0.0.127.in-addr.arpa", "Example.org", "example.org.",
        "a:b@example.org",
        "http://example.org", "example.org/simple", "ex\u0430mple.org", "*.org", "*", "", ".org", "a..b.org", "-a.org",
        "example.org:0", "example.org:65536", "example.org:443:443", "example.org:0443", "example.org:",
        "example.org:\u0664",
        "${steps.0.result.host}", "secret:mail/token:5a0cf7", "example.org\nevil.test", f"{'a' * 64}.org", 7, None,
    ],
)  # fmt: skip
def test_what_is_no_plain_name_of_a_host_is_denied_whatever_a_rule_allows(said):
    assert ruled(OPEN, said).verdict == "deny"
    assert rule(Policy.admit(OPEN), SHELL, {"command": "make", "network": str(said) or "x"}).verdict == "deny"


@promise("workspaces:network-names")
def test_a_name_is_read_with_its_port_and_a_list_of_others_is_refused():
    assert site("xn--pyp-l5a.org:8443") == ("xn--pyp-l5a.org", 8443)
    for entry in ("*", "*.", "127.0.0.1", "http://example.org", "Example.org"):
        with pytest.raises(PolicyInvalid, match=r"^network\.allow"):
            Policy.admit({"network": {"allow": [entry]}})
    with pytest.raises(PolicyInvalid, match="others"):
        Policy.admit({"network": {"others": "allow"}})


@promise("workspaces:network-told")
def test_what_was_reached_is_an_event_with_host_port_and_bytes_and_nothing_else():
    reached = HostTraffic(host="example.org", port=443, connections=2, sent=1200, received=88000)
    result = ToolResult(success=True, used=JailUse(cpu_s=1, output_bytes=5, reached=(reached,), refused=3))
    called, told = call_drafts("shell.run", {"command": "make"}, result, effect=1, sources=None, step=2)
    assert told.name == "network.reached"
    assert told.text == "shell.run reached example.org:443 (sent 1,200 bytes, received 88,000), 3 refused"
    assert told.data == {
        "tool": "shell.run",
        "reached": [{"host": "example.org", "port": 443, "connections": 2, "sent": 1200, "received": 88000}],
        "refused": 3,
    }
    assert called.data["used"]["reached"] == told.data["reached"]
    unreached = result.model_copy(update={"used": JailUse(cpu_s=1, output_bytes=5)})
    (alone,) = call_drafts("shell.run", {"command": "make"}, unreached, effect=1, sources=None, step=2)
    assert alone.data["used"] == {"cpu_s": 1.0, "memory_mb": None, "output_bytes": 5}
