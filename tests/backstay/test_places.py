import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backstay.policies.policy import Policy, rule
from backstay.tools.tool import Tool
from tests.requirements import promise
from tests.work import calls_in

EXAMPLE = "@example.com"
SITE = "https://example.com"


def verdict(section, conditions, arguments, other="allow", **more):
    default = {"restricted_write": "ask" if section == "allow" else other}
    policy = Policy.admit({"default": default, section: [{"tool": "a.b"} | conditions]})
    return rule(policy, Tool(name="a.b", **more), arguments).verdict


def lets(operator, operand, value):
    """Return whether a rule that allows lets a value pass; in each way in which a condition can permit something."""
    condition = {"x": {operator: operand}}
    said = {
        verdict("allow", {"when": condition}, {"x": value}) == "allow",
        verdict("deny", {"unless": condition}, {"x": value}) == "allow",
        verdict("ask", {"unless": condition}, {"x": value}) == "allow",
    }
    assert len(said) == 1
    return said.pop()


def stops(operator, operand, value):
    """Return whether a rule that denies or asks holds for a value; in each way in which a condition can forbid."""
    condition = {"x": {operator: operand}}
    said = {
        verdict("deny", {"when": condition}, {"x": value}) == "deny",
        verdict("ask", {"when": condition}, {"x": value}) == "ask",
        verdict("allow", {"unless": condition}, {"x": value}) == "ask",
    }
    assert len(said) == 1
    return said.pop()


@promise("policy:allowed-address")
@pytest.mark.parametrize(
    ("operator", "operand", "value"),
    [
        ("ends_with", EXAMPLE, "bo@example.com"),
        ("ends_with", EXAMPLE, "bo.o'neil+news@example.com"),
        ("ends_with", EXAMPLE, ["bo@example.com", "ana@example.com"]),
        ("ends_with", "example.com", "bo@example.com"),
        ("ends_with", ".example.com", "bo@mail.example.com"),
        ("ends_with", "-bot@example.com", "build-bot@example.com"),
        ("contains", EXAMPLE, "bo@example.com"),
        ("starts_with", "bo@example.com", "bo@example.com"),
        ("equals", "bo@example.com", "bo@example.com"),
        ("in", ["bo@example.com"], ["bo@example.com"]),
        ("contains", "bo@example.com", ["bo@example.com"]),
        ("starts_with", "@team", "@team-a"),
        ("starts_with", "git@example.com:own/", "git@example.com:own/tool.git"),
    ],
)
def test_a_plain_address_that_fits_is_let_through(operator, operand, value):
    assert lets(operator, operand, value)


@promise("policy:allowed-address")
@pytest.mark.parametrize(
    "value",
    [
        "eve@evil.test, bo@example.com",
        "eve@evil.test;bo@example.com",
        "eve@evil.test bo@example.com",
        "<eve@evil.test> bo@example.com",
        "eve@evil.test\nCc: bo@example.com",
        "eve@evil.test\r\nbo@example.com",
        "eve@evil.test\x00bo@example.com",
        "eve@evil.test%2Cbo@example.com",
        "eve%evil.test@example.com",
        "evil.test!eve@example.com",
        "@evil.test:bo@example.com",
        '"eve@evil.test,"@example.com',
        "=?utf-8?q?eve=40evil.test=2C?=bo@example.com",
        "(bo)eve@evil.test,x@example.com",
        "eve@evil.test\u2028bo@example.com",
        "eve@evil.test\uff0cbo@example.com",
        "b\u043e@example.com",
        "-oQ/tmp@example.com",
        "bo@evil.test\\@example.com",
        "@example.com",
        ["bo@example.com", "eve@evil.test, bo@example.com"],
        ["bo@example.com", {"email": "eve@evil.test"}],
        [],
        {"email": "bo@example.com"},
    ],
)
@pytest.mark.parametrize(
    ("operator", "operand"), [("ends_with", EXAMPLE), ("contains", EXAMPLE), ("ends_with", "example.com")]
)
def test_no_companion_of_an_allowed_address_is_let_through(operator, operand, value):
    assert not lets(operator, operand, value)


@promise("policy:allowed-address")
@pytest.mark.parametrize(
    ("operator", "operand", "value"),
    [
        ("starts_with", "bo@example.com", "bo@example.com, eve@evil.test"),
        ("starts_with", "bo@example.com", "bo@example.com.evil.test"),
        ("starts_with", "bo@", "bo@evil.test"),
        ("starts_with", "mailto:bo@example.com", "mailto:bo@example.com?cc=eve@evil.test"),
        ("contains", "bo@example.com", ["eve@evil.test", "bo@example.com"]),
        ("contains", "bo@example.com", "bo@example.com.evil.test"),
        ("contains", "@example.", "bo@example.evil.test"),
        ("contains", "example.com", "bo@example.com.evil.test"),
        ("ends_with", "bo@example.com", "evebo@example.com"),
        ("ends_with", "example.com", "eve@evilexample.com"),
        ("ends_with", "<bo@example.com>", "Eve <eve@evil.test>, <bo@example.com>"),
    ],
)
def test_a_part_of_an_address_permits_no_other_address(operator, operand, value):
    assert not lets(operator, operand, value)


@promise("policy:allowed-address")
@pytest.mark.parametrize("other", ["bcc", "cc", "Bcc", "reply_to", "replyTo", "ccRecipients", "BCC_Emails"])
def test_whom_an_address_permits_brings_no_other_recipient_along(other):
    operands = {
        "ends_with": EXAMPLE,
        "contains": "bo@example.com",
        "equals": "bo@example.com",
        "in": ["bo@example.com"],
    }
    for operator, operand in operands.items():
        for section, word in (("allow", "when"), ("deny", "unless")):
            conditions = {word: {"to": {operator: operand}}}
            to = {"to": "bo@example.com", "body": "eve@evil.test"}
            for eve in ("eve@evil.test", ["bo@example.com", "eve@evil.test"], "Bo <bo@example.com>", {"email": "x"}):
                assert verdict(section, conditions, to | {other: eve}) != "allow", (operator, eve)
            for nobody in ("", [], None, "bo@example.com", ["bo@example.com"]):
                assert verdict(section, conditions, to | {other: nobody}) == "allow", (operator, nobody)


@promise("policy:allowed-address")
@pytest.mark.parametrize(
    "other",
    [
        {"options": {"cc": ["eve@evil.test"]}},
        {"headers": {"X-Bcc": "eve@evil.test"}},
        {"more": [{"send_to": {"email": "eve@evil.test"}}]},
        {"to2": "eve@evil.test"},
        {"guests": ["eve@evil.test"]},
        {"\uff43\uff43": "eve@evil.test"},
    ],
)
def test_another_recipient_is_found_within_other_arguments(other):
    own = {"when": {"to": {"ends_with": EXAMPLE}}}
    assert verdict("allow", own, {"to": "bo@example.com"} | other) == "ask"
    below = {"when": {"message.to": {"ends_with": EXAMPLE}}}
    assert verdict("allow", below, {"message": {"to": "bo@example.com"} | other}) == "ask"
    harmless = {"options": {"to": 5, "cc": [], "span": {"from": "2026-01-01", "to": "2026-02-01"}}}
    assert verdict("allow", own, {"to": "bo@example.com"} | harmless) == "allow"
    assert verdict("allow", own, {"to": "bo@example.com", "options": {"cc": ["cy@example.com"]}}) == "allow"
    assert verdict("allow", below, {"message": {"to": "bo@example.com", "cc": "cy@example.com"}}) == "allow"


EVE = "eve@evil.test"
NAMES_OF_ONE = [
    *("recipient_email", "recipientEmail", "recipient_emails", "recipient_address", "email_address", "to_addr"),
    *("to_addrs", "to_list", "user_email", "contact_email", "destination", "whoever"),
]


@promise("policy:allowed-address")
@pytest.mark.parametrize("name", NAMES_OF_ONE)
def test_whom_an_address_permits_is_a_recipient_whatever_the_argument_is_called(name):
    for operator, operand in (("ends_with", EXAMPLE), ("equals", "bo@example.com"), ("in", ["bo@example.com"])):
        own = {"when": {name: {operator: operand}}}
        assert verdict("allow", own, {name: "bo@example.com", "cc": [EVE]}) == "ask"
        assert verdict("allow", own, {name: "bo@example.com", "options": {"bcc": EVE}}) == "ask"
        honest = {name: "bo@example.com", "cc": ["bo@example.com"], "recipient_name": "Bo", "body": f"Ask {EVE}"}
        assert verdict("allow", own, honest) == "allow"
    organizer = {"when": {"organizer_email": {"ends_with": EXAMPLE}}}
    assert verdict("allow", organizer, {"organizer_email": "bo@example.com", "attendees": [EVE]}) == "ask"


@promise("policy:allowed-address")
@pytest.mark.parametrize(
    "other",
    [
        *("bccs", "ccs", "BCCs", "cc_list", "bccList", "extra_recipients", "recipient_list", "blind_carbon_copy"),
        *("to_addrs", "notify_emails", "h:cc", "also_to", "envelope_to", "cc_addr", "cc_recipient_emails", "copy"),
        *("hidden_copy", "share_with", "notify", "watchers", "members", "email_address", "invite_email"),
    ],
)
def test_another_recipient_is_found_by_the_words_of_its_name(other):
    own = {"when": {"to": {"ends_with": EXAMPLE}}}
    for eve in (EVE, [EVE], ["bo@example.com", f"Eve <{EVE}>"]):
        assert verdict("allow", own, {"to": "bo@example.com", other: eve}) == "ask"
        assert verdict("allow", own, {"to": "bo@example.com", "more": [{other: eve}]}) == "ask"
    for nobody in ("", [], None, "cy@example.com", ["cy@example.com"]):
        assert verdict("allow", own, {"to": "bo@example.com", other: nobody}) == "allow"


@promise("policy:allowed-address")
@pytest.mark.parametrize(
    "other",
    [
        {"headers": [{"name": "Bcc", "value": "{}"}]},
        {"headers": [{"key": "X-Cc", "value": ["{}"]}]},
        {"headers": [["Bcc", "{}"]]},
        {"people": [{"type": "cc", "who": "{}"}]},
        {"headers": "Bcc: {}"},
        {"headers": ["X-Mailer: a", "bcc:{}"]},
        {"raw": "Subject: hello\r\nResent-To:\r\n {}\r\n\r\nHello"},
        {"options": '{"cc": "{}"}'},
        {"options": '{"more": [{"bcc": ["{}"]}]}'},
        {"options": ['{"headers": "Bcc: {}"}']},
        {"query_string": "a=1&cc={}"},
    ],
)
def test_another_recipient_is_found_in_headers_and_in_strings_that_hold_it(other):
    def filled(value):
        match value:
            case str():
                return value.replace("{}", address)
            case list():
                return [filled(each) for each in value]
            case _:
                return {key: filled(each) for key, each in value.items()}

    own = {"when": {"to": {"ends_with": EXAMPLE}}}
    address = EVE
    assert verdict("allow", own, {"to": "bo@example.com"} | filled(other)) == "ask"
    address = "cy@example.com"
    assert verdict("allow", own, {"to": "bo@example.com"} | filled(other)) == "allow"


@promise("policy:allowed-address")
@pytest.mark.parametrize(
    "other",
    [
        {"subject": f"Mail of {EVE}", "body": f"To: {EVE}\nCc: {EVE}\n\nas I wrote to {EVE}"},
        {"message": f'{{"cc": "{EVE}"}}', "html": f'<a href="mailto:{EVE}?cc={EVE}">{EVE}</a>'},
        {"from": EVE, "from_email": EVE, "sender": {"address": EVE}, "account": EVE, "user_google_email": EVE},
        {"in_reply_to": f"<1.{EVE}>", "message_id": f"<2.{EVE}>", "references": [f"<3.{EVE}>"], "thread_id": EVE},
        {"recipient_name": "Bo Keller", "email_subject": "Hello", "email_body": f"Ask {EVE}", "to_name": "Bo"},
        {
            "max_recipients": 5,
            "notify_attendees": "yes",
            "send_emails": True,
            "email_type": "html",
            "valid_to": "2027-01-01",
        },
        {"query": f"to:{EVE}", "signature": f"Eve, {EVE}", "options": '{"priority": "high", "from": "2026-01-01"}'},
        {"raw": f"Subject: Hello\r\n\r\nTo: {EVE} I wrote", "data": "{not json", "rows": f"name,mail\neve,{EVE}"},
    ],
)
def test_what_merely_mentions_an_address_or_says_who_sends_is_no_other_recipient(other):
    own = {"when": {"to": {"ends_with": EXAMPLE}}}
    assert verdict("allow", own, {"to": "bo@example.com"} | other) == "allow"
    sender = {"when": {"from_email": {"equals": "ana@example.com"}}}
    assert verdict("allow", sender, {"from_email": "ana@example.com", "to": EVE}) == "allow"
    both = {"when": {"user_google_email": {"equals": "ana@else.test"}, "to": {"ends_with": EXAMPLE}}}
    sent = {"user_google_email": "ana@else.test", "to": "bo@example.com", "cc": "cy@example.com"}
    assert verdict("allow", both, sent) == "allow"


@promise("policy:allowed-address")
def test_a_line_break_in_a_subject_and_json_beyond_reading_bring_nobody_along():
    own = {"when": {"to": {"ends_with": EXAMPLE}}}
    for said in ("Hello\r\nBcc: eve@evil.test", "Hello\nx: y\nCC : eve@evil.test"):
        assert verdict("allow", own, {"to": "bo@example.com", "subject": said}) == "ask"
    long = '{"cc": "eve@evil.test", "x": "' + "x" * 70_000 + '"}'
    assert verdict("allow", own, {"to": "bo@example.com", "options": long}) == "ask"
    deep = '{"a":' * 5_000 + '{"cc": "eve@evil.test"}' + "}" * 5_000
    assert verdict("allow", own, {"to": "bo@example.com", "options": deep}) == "ask"


@promise("policy:allowed-address")
def test_another_recipient_has_a_condition_of_its_own_or_is_none():
    own = {"when": {"to": {"ends_with": EXAMPLE}, "cc": {"in": ["cy@else.test"]}}}
    assert verdict("allow", own, {"to": "bo@example.com", "cc": "cy@else.test"}) == "allow"
    assert verdict("allow", own, {"to": "bo@example.com", "cc": "cy@else.test", "bcc": "eve@evil.test"}) == "ask"
    below = {"when": {"to.email": {"ends_with": EXAMPLE}}}
    assert verdict("allow", below, {"to": {"email": "bo@example.com"}, "cc": [{"email": "eve@evil.test"}]}) == "ask"
    assert verdict("allow", below, {"to": {"email": "bo@example.com"}, "cc": [{"email": "cy@example.com"}]}) == "allow"
    other = {"when": {"subject": {"starts_with": "Re:"}}}
    assert verdict("allow", other, {"subject": "Re: x", "to": "a@x.test", "bcc": "eve@evil.test"}) == "allow"
    stops = {"when": {"to": {"ends_with": "@evil.test"}}}
    assert verdict("deny", stops, {"to": "bo@example.com", "bcc": "bo@example.com"}) == "allow"


@promise("policy:allowed-url")
@pytest.mark.parametrize(
    ("operator", "operand", "value"),
    [
        ("starts_with", SITE, "https://example.com"),
        ("starts_with", SITE, "https://example.com/a/b?c=d#e"),
        ("starts_with", SITE, "https://example.com?q=1"),
        ("starts_with", "https://example.com/", "https://example.com/straße"),
        ("starts_with", "https://example.com:8443/", "https://example.com:8443/a"),
        ("starts_with", "https://example.com/own", "https://example.com/own/tool"),
        ("starts_with", "https://example.com/search?q=", "https://example.com/search?q=cats"),
        ("starts_with", "https://", "https://anything.test/a"),
        ("contains", SITE, "https://example.com/a"),
        ("contains", "example.com", "https://api.example.com/a"),
        ("ends_with", ".example.com", "api.example.com"),
        ("ends_with", ".example.com", "https://api.example.com"),
        ("starts_with", "example.com", "example.com:443/a"),
        ("ends_with", "report.txt", "/work/report.txt"),
        ("ends_with", ".tar.gz", "out/a.tar.gz"),
        ("starts_with", "10.0.", "10.0.0.7"),
        ("starts_with", "/work/", "/work/a b\u00e9.txt"),
        ("equals", SITE, "https://example.com"),
    ],
)
def test_a_url_that_stays_at_the_allowed_host_is_let_through(operator, operand, value):
    assert lets(operator, operand, value)


@promise("policy:allowed-url")
@pytest.mark.parametrize(
    "value",
    [
        "https://example.com.evil.test/",
        "https://example.com@evil.test/",
        "https://example.com:pw@evil.test/",
        "https://example.com\\@evil.test/",
        "https://example.com%2eevil.test/",
        "https://example.com%2f@evil.test/",
        "https://example.com\u3002evil.test/",
        "https://example.com\uff0eevil.test/",
        "https://example.com\u2024evil.test/",
        "https://example.com\t.evil.test/",
        "https://example.com\n.evil.test/",
        "https://example.com .evil.test/",
        "https://example.com-evil.test/",
        "https://example.community/",
        "https://example.com:8443/",
        "https://example.com/a\\..\\b",
        "https://example.com/../b",
        "https://example.com/%2e%2e/b",
        "https://example.com/..;/b",
        "https://example.com/a\r\nHost: evil.test",
        "https://example.com/a%0d%0aHost:evil.test",
        "https://example.com/a\u200b",
        "https://example.com/ https://evil.test/",
    ],
)
def test_no_url_that_only_begins_right_is_let_through(value):
    assert not lets("starts_with", SITE, value)


@promise("policy:allowed-url")
@pytest.mark.parametrize(
    ("operator", "operand", "value"),
    [
        ("starts_with", "https://example.com/own", "https://example.com/own-evil/tool"),
        ("starts_with", "https://", "https://example.com@evil.test/"),
        ("starts_with", "/", "//evil.test/a"),
        ("starts_with", "/", "/\\evil.test/a"),
        ("starts_with", "//example.com", "//example.com.evil.test"),
        ("starts_with", "example.com", "example.com.evil.test/"),
        ("starts_with", "example.com", "example.com@evil.test"),
        ("starts_with", "example.com", "example.com:pw@evil.test"),
        ("starts_with", "10.0.", "10.0.evil.test"),
        ("ends_with", ".example.com", "https://evil.test/.example.com"),
        ("ends_with", ".example.com", "https://evil.test?.example.com"),
        ("ends_with", ".example.com", "https://evil.test#.example.com"),
        ("ends_with", ".example.com", "https://evil.test\\.example.com"),
        ("ends_with", ".example.com", "evil.test/.example.com"),
        ("ends_with", ".example.com", "evil.test\n.example.com"),
        ("ends_with", "example.com", "https://evilexample.com"),
        ("contains", "example.com", "https://evil.test/example.com"),
        ("contains", "example.com", "https://example.com.evil.test/"),
        ("contains", SITE, "https://evil.test/?to=https://example.com"),
        ("ends_with", "https://example.com/", "https://evil.test/?to=https://example.com/"),
    ],
)
def test_a_part_of_a_url_permits_no_other_place(operator, operand, value):
    assert not lets(operator, operand, value)


@promise("policy:allowed-url")
@pytest.mark.parametrize(
    "up",
    [
        *("..", "..?q=1", "..#part", "..%3fq", "..%23part", "..;q/x", "%2e%2e/x", "..\\x", "..\x00/x"),
        *(".\u200b./x", "\uff0e\uff0e/x", "\u2025/x", "%c0%ae%c0%ae/x", ".%00./x", "%uff0e./x", "%252e./x"),
    ],
)
def test_a_place_permits_none_above_it_however_the_way_up_is_written(up):
    assert not lets("starts_with", f"{SITE}/own/", f"{SITE}/own/{up}")
    assert not lets("starts_with", "/data/", f"/data/own/{up}")


@promise("policy:allowed-address")
@given(st.text(min_size=1, max_size=12), st.sampled_from(["", ",", ";", " ", "\n", "<", ">", "%2C", "\u3000", ":"]))
def test_nothing_before_an_allowed_address_brings_a_second_one(more, sign):
    value = f"eve@evil.test{sign}{more}bo@example.com"
    assert not lets("ends_with", EXAMPLE, value)


@promise("policy:spelled")
@pytest.mark.parametrize(
    "value",
    [
        "eve@evil.test",
        "eve@Evil.TEST",
        "eve@evil.test ",
        "eve@evil.test.",
        "<eve@evil.test>",
        "Eve <eve@evil.test>",
        "eve@evil.test, bo@example.com",
        "bo@example.com, eve@evil.test",
        "eve@evil.test\nCc: bo@example.com",
        "eve @ evil.test",
        "eve@evil.test?cc=bo",
        "eve%40evil.test",
        "eve%2540evil%2etest",
        "eve@evil\u200b.test",
        "eve\uff20evil.test",
        "eve@\uff45vil\uff0etest",
        "eve@evil\u3002test",
        "eve@(comment)evil.test",
        "(a (nested) one) eve @ evil.test (another",
        '"eve"@evil.test',
        "eve@[evil.test]",
        "eve@evil .test",
        "eve\\u0040evil.test",
        '{"to": "\\u0065ve@evil.test"}',
        "bo@example.com; Eve <eve@evil.test>",
        "mailto:eve@evil.test",
        ["bo@example.com", "EVE@evil.test"],
        ["bo@example.com", ["EVE@evil.test"]],
        [{"email": "eve@evil.test"}],
    ],
)
def test_a_forbidden_address_is_found_however_it_is_spelled(value):
    for operator, operand in {
        "ends_with": "@evil.test",
        "contains": "@Evil.test",
        "equals": "eve@evil.test",
        "in": ["x@y.test", "Eve@evil.test"],
        "starts_with": "eve@",
    }.items():
        assert stops(operator, operand, value), operator


@promise("policy:spelled")
@pytest.mark.parametrize(
    "value",
    [
        "http://intern.test/",
        "http://INTERN.test/",
        "HTTP://intern.test/",
        " http://intern.test/",
        "http://intern.test./",
        "http://intern.test:80/",
        "http://eve@intern.test/",
        "http://eve:pw@intern.test/",
        "http:\\\\intern.test\\",
        "http:/intern.test/",
        "http://int\u00adern.test/",
        "ht\ttp://intern.test/",
        "http://%69ntern.test/",
        "//intern.test/",
        "intern.test",
    ],
)
def test_a_forbidden_url_is_found_however_it_is_spelled(value):
    for operator, operand in {"starts_with": "http://intern.test", "contains": "INTERN.test"}.items():
        assert stops(operator, operand, value), operator


@promise("policy:spelled")
@pytest.mark.parametrize(
    "value",
    [
        "http://10.1/x",
        "http://167772161",
        "http://0xa.0.0.1/",
        "http://0xa000001/",
        "http://012.0.0.1:80/",
        "http://me@10.0.0.1./",
        "http://[::ffff:10.0.0.1]/",
        "http://[::ffff:a00:1]:80/",
    ],
)
def test_a_forbidden_number_is_found_however_it_is_written(value):
    for operator, operand in {"starts_with": "http://10.0.0.1", "contains": "10.0.0.1"}.items():
        assert stops(operator, operand, value), operator
    assert not stops("contains", "10.0.0.2", value)
    assert stops("starts_with", "http://10.0.0.1/", value)
    assert not stops("contains", "10.0.0.1", "http://10.1.1.1.1/0xa.0.0.999")


@promise("policy:spelled")
@pytest.mark.parametrize(
    "value", ["10.1", "167772161", "0xa000001", "012.0.0.1:80", "[::ffff:10.0.0.1]", "::ffff:a00:1"]
)
def test_a_forbidden_number_is_found_without_a_scheme(value):
    for operator, operand in {
        "equals": "10.0.0.1",
        "in": ["10.0.0.1"],
        "starts_with": "10.0.",
        "contains": "10.0.0.1",
    }.items():
        assert stops(operator, operand, value), operator
        assert stops(operator, operand, [value]), operator
        assert not stops(operator, operand, "11.1"), operator


@promise("policy:spelled")
@pytest.mark.parametrize(
    "value", ["http://[::1]/", "http://[0:0:0:0:0:0:0:1]:80/a", "http://[::0001]", "http://[::0.0.0.1]/"]
)
def test_a_forbidden_number_of_version_6_is_found_at_any_length(value):
    assert stops("starts_with", "http://[::1]/", value)
    assert stops("contains", "[::1]", value)
    assert stops("equals", "::1", value.partition("//")[2].partition("]")[0] + "]")
    assert not stops("starts_with", "http://[::2]/", value)


@promise("policy:spelled")
@pytest.mark.parametrize(
    "value", ["https://evil.test", "https://evil.test?q=1", "https://me@evil.test:443#x", "evil.test?q=1"]
)
def test_a_forbidden_host_needs_no_path(value):
    assert stops("starts_with", "https://evil.test/", value)
    assert not stops("starts_with", "https://evil.test/a", value)
    assert not stops("starts_with", "https://evil.test/", "https://evil.test.example/")


@promise("policy:spelled")
def test_other_texts_are_found_in_any_spelling_too():
    assert stops("equals", {"branch": ["Main"]}, {"branch": ["MAIN"]})
    assert stops("starts_with", "/etc/", "/%65tc/passwd")
    assert stops("starts_with", "/etc/", "/ETC/passwd")
    assert stops("starts_with", "/etc/", "file:///etc/passwd")
    assert stops("starts_with", "/etc/", "FILE://localhost/etc/passwd")
    assert stops("ends_with", ".exe", "setup.EXE ")
    assert stops("contains", "drop table", "DROP\tTABLE users")
    assert stops("equals", "https://intern.test", "HTTPS://intern.test:443/")


CODED_ADDRESSES = [
    "eve&#64;evil.test",
    "eve&#x40;evil&#46;test",
    "eve&#X40;evil&#00046;test",
    "eve&commat;evil&period;test",
    "eve&amp;#64;evil.test",
    "eve&#64evil.test",
    f"eve&#{'0' * 5000}64;evil.test",
    f"&#{'9' * 5000};eve&#64;evil.test",
    "\uff06\uff03\uff16\uff14\uff1beve&#64;evil.test",
    "eve%26%2364%3bevil.test",
    "eve&#37;40evil.test",
    "%65%76%65%40%65%76%69%6c%2e%74%65%73%74",
    "eve\uff0540evil.test",
    "=?utf-8?q?eve=40evil=2Etest?=",
    "=?UTF-8?Q?Eve?= <eve@=?utf-8?Q?evil=2etest?=>",
    "=?utf-8?B?ZXZlQGV2aWwudGVzdA==?=",
    "=?utf-8?b?ZXZlQGV2aWwudGVzdA?=",
    "=?utf-8?q?eve?= \r\n =?utf-8?q?=40evil=2Etest?=",
    "=?utf-8*en?q?eve=40evil.test?=",
    "=?utf-16le?b?ZQB2AGUAQABlAHYAaQBsAC4AdABlAHMAdAA=?=",
    "=?utf-7?q?eve+AEA-evil.test?=",
    "=?none-such?q?eve=40evil.test?=",
    "=?utf-8?q?not_this?= and =?utf-8?q?eve=40evil.test?=, bo@example.com",
    "\uff45\uff56\uff45\uff20\uff45\uff56\uff49\uff4c\uff0e\uff54\uff45\uff53\uff54",
    "eve@xn--evil-.test",
]
"""An address as programs read it that take HTML, URLs, headers of mail or wide letters."""
CODED_URLS = [
    "https://evil&#46;test/",
    "https:&#47;&#47;evil&period;test/x",
    "https&colon;//evil.test",
    "https://%65vil%2Etest/",
    "https%3A%2F%2Fevil.test%2F",
    "https://%25%36%35vil.test/",
    "https://\uff45vil\uff0etest/",
    "https://\u24d4\u24e5\u24d8\u24db.test/",
    "=?utf-8?q?https=3A=2F=2Fevil=2Etest?=",
]


@promise("policy:paths-elsewhere")
@pytest.mark.parametrize(
    ("operator", "operand", "inside", "outside"),
    [
        (
            "starts_with",
            "/home/ana/.ssh",
            [
                *("~/.ssh/authorized_keys", "~ana/.ssh/x", "~", "%7e/.ssh/x", " ~/.ssh/x", "$HOME/.ssh/x"),
                *("%USERPROFILE%\\.ssh\\x", "$env:HOME/x", ".ssh/x", "./.ssh/x", ".//.ssh", "ana/.ssh/x", ".SSH/x"),
                *("%HOMEDRIVE%%HOMEPATH%\\.ssh", "$HOME$SUB/x", "$(HOME)/x", " .ssh/x", "\t.ssh/x", "%09.ssh/x"),
            ],
            ["notes.txt", ".sshx", "x/.ssh", "/tmp/.ssh/x", "a ~/b", "~5 minutes", "$5", "keep it in .ssh"],
        ),
        ("starts_with", "/etc/", ["etc/passwd", "~/x"], ["etcetera", "x/etc/y"]),
        ("starts_with", "/", ["~/x"], ["notes.txt", "a/b"]),
        ("starts_with", "C:\\Users\\ana", ["~\\x", "ana\\x", "Users/ana/x"], ["x", "D:\\ana"]),
        ("equals", "/etc/passwd", ["etc/passwd", "passwd", "~/x"], ["passwd/x", "etc"]),
        ("equals", "C:\\Users\\ana", ["~\\x", "%USERPROFILE%", "$HOME/x", "ana"], ["x", "D:\\ana"]),
        ("in", ["C:\\x", "D:\\Users\\ana"], ["%USERPROFILE%", "Users\\ana"], ["y", "E:\\ana"]),
        ("in", ["/etc/passwd", "/etc/group"], ["group", "$ROOT/etc/passwd"], ["x"]),
        ("contains", "/.ssh/", [".ssh/id_rsa", ["x", ".ssh/id_rsa"]], [".sshx/y", ["x", "y"]]),
        ("ends_with", "/.ssh/id_rsa", [".ssh/id_rsa", "id_rsa"], ["x_id_rsa", "id_rsa/x"]),
    ],
)
def test_a_path_that_may_lead_to_a_forbidden_place_is_in_doubt(operator, operand, inside, outside):
    assert [value for value in inside if not stops(operator, operand, value)] == []
    assert [value for value in outside if stops(operator, operand, value)] == []


@promise("policy:long-choices")
def test_a_long_list_of_absolute_paths_takes_little_more_than_one_of_other_paths():
    values = [f"file{number}/x.txt" for number in range(50)]
    places = [f"srv/d{number}/e" for number in range(50)]
    other, absolute = (
        calls_in(lambda choices=choices: verdict("deny", {"when": {"x": {"in": choices}}}, {"x": values}))
        for choices in (places, [f"/{place}" for place in places])
    )
    assert absolute < 1.15 * other


@promise("policy:spelled")
@pytest.mark.parametrize(
    "value", ["URL:http://10.0.0.1/x", "<URL:http://10.0.0.1/>", "< http://10.0.0.1 >", " url: http://10.1"]
)
def test_a_forbidden_url_is_found_as_readers_take_it_out_of_a_text(value):
    for operator, operand in {"starts_with": "http://10.0.0.1", "contains": "10.0.0.1"}.items():
        assert stops(operator, operand, value), operator
    assert not stops("starts_with", "http://10.0.0.2", value)


@promise("policy:spelled-coded")
@pytest.mark.parametrize("value", [*CODED_ADDRESSES, [CODED_ADDRESSES[0]]])
def test_a_forbidden_address_is_found_in_every_code_that_programs_take_off(value):
    for operator, operand in {
        "ends_with": "@evil.test",
        "contains": "evil.test",
        "equals": "eve@evil.test",
        "in": ["x@y.test", "Eve@evil.test"],
    }.items():
        assert stops(operator, operand, value), operator


@promise("policy:spelled-coded")
@pytest.mark.parametrize("value", CODED_URLS)
def test_a_forbidden_host_is_found_in_every_code_that_programs_take_off(value):
    for operator, operand in {"starts_with": "https://evil.test", "contains": "evil.test"}.items():
        assert stops(operator, operand, value), operator


@promise("policy:spelled-coded")
@pytest.mark.parametrize(
    ("named", "value"),
    [
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("b\u00fccher.example", "XN--BCHER-KVA.example"),
        ("b\u00fccher.example", "b%C3%BCcher.example"),
        ("b\u00fccher.example", "b&uuml;cher.example"),
        ("b\u00fccher.example", "bu\u0308cher.example"),
        ("b\u00fccher.example", "=?iso-8859-1?q?b=FCcher?=.example"),
        ("b\u00fccher.example", "xn--bcher&#45;kva.example"),
        ("xn--bcher-kva.example", "b\u00fccher.example"),
        ("xn--bcher-kva.example", "B\u00dcCHER.example"),
        ("xn--bcher-kva.example", "b%C3%BCcher.example"),
        ("stra\u00dfe.example", "xn--strae-oqa.example"),
        ("xn--strae-oqa.example", "strasse.example"),
        ("\u4f8b\u3048.\u30c6\u30b9\u30c8", "xn--r8jz45g.xn--zckzah"),
    ],
)
def test_a_host_in_letters_of_any_script_is_its_name_in_ascii(named, value):
    assert stops("equals", f"eve@{named}", f"eve@{value}")
    assert stops("ends_with", f"@{named}", f"eve@{value}")
    assert stops("ends_with", f".{named}", f"https://www.{value}/a")
    assert stops("contains", named, f"https://www.{value}/")
    assert stops("starts_with", f"https://{named}/", f"https://{value}/")
    assert not stops("contains", named, f"https://other.{value.rpartition('.')[2]}")


@promise("policy:allowed-coded")
@pytest.mark.parametrize("value", [*CODED_ADDRESSES, *(f"{code}, bo@evil.test" for code in CODED_ADDRESSES)])
def test_no_coded_address_is_let_through_by_what_it_would_be_read_as(value):
    for operand in ("@evil.test", "evil.test"):
        assert not lets("ends_with", operand, value)
    assert not lets("contains", "@evil.test", value)
    assert not lets("equals", "eve@evil.test", value)


@promise("policy:allowed-coded")
@pytest.mark.parametrize(
    ("operator", "operand", "value"),
    [
        ("starts_with", SITE, "https://example.com&#46;evil.test/"),
        ("starts_with", SITE, "https://example.com&commat;evil.test/"),
        ("starts_with", SITE, "https://example.com%2eevil.test/"),
        ("starts_with", SITE, "https://\uff45xample.com/"),
        ("starts_with", "https://b\u00fccher.example/", "https://xn--bcher-kva.example/"),
        ("starts_with", f"{SITE}/a/", "https://example.com/a/&#46;&#46;/b"),
        ("starts_with", f"{SITE}/a/", "https://example.com/a/&period;&period;/b"),
        ("ends_with", "example.com", "evil&#46;test/a.example.com"),
        ("ends_with", "example.com", "evil&period;test/a.example.com"),
        ("ends_with", "example.com", "evil%2etest/a.example.com"),
        ("ends_with", ".example.com", "=?utf-8?q?evil=2Etest=2F?=.example.com"),
        ("ends_with", "example.com", "evil\u3002test/a.example.com"),
        ("ends_with", "example.com", "evil\uff0etest/a.example.com"),
        ("ends_with", "example.com", "evil\u2024test/a.example.com"),
    ],
)
def test_no_coded_url_is_let_through_by_what_stands_beside_the_code(operator, operand, value):
    assert not lets(operator, operand, value)


@promise("policy:spelled")
@pytest.mark.parametrize(
    ("operator", "operand", "value"),
    [
        ("ends_with", "@evil.test", "bo@evil.test.example.com"),
        ("contains", "evil.test", "fish &amp; chips, 100 % =?nothing?= xn--"),
        ("contains", "evil.test", "=?utf-8?b?ZXZpbA==?= a test"),
        ("ends_with", "@evil.test", "bo@evil.tests"),
        ("equals", "bo@example.com", "bobo@example.com"),
        ("equals", "main", "maintenance"),
        ("starts_with", "http://intern.test", "http://example.com/http"),
    ],
)
def test_another_address_is_not_taken_for_a_forbidden_one(operator, operand, value):
    assert not stops(operator, operand, value)


@promise("policy:spelled")
@given(st.text(max_size=200), st.text(min_size=1, max_size=10))
@example("\u0301", "e")
def test_what_is_written_as_a_rule_says_is_always_found(around, word):
    assert stops("contains", word, f"{around}{word}{around}")
    assert stops("starts_with", word, f"{word}{around}")
    assert stops("ends_with", word, f"{around}{word}")
    assert stops("equals", word, word)


@promise("policy:allowed-url")
@pytest.mark.parametrize(
    ("operand", "fitting", "strange"),
    [
        (
            "localhost",
            ["localhost", "localhost:80", "localhost/a"],
            ["localhost.evil.test", "localhost@evil.test", "localhosts.x"],
        ),
        (
            "localhost:",
            ["localhost:80", "localhost:80/a?b"],
            ["localhost:8@evil.test", "localhost:x@evil.test", "localhost:"],
        ),
        ("localhost:80", ["localhost:80", "localhost:80/a"], ["localhost:8080", "localhost:80@evil.test"]),
        ("example.com:", ["example.com:443"], ["example.com:x@evil.test", "example.com:1@evil.test"]),
        ("example.com", ["example.com", "example.com:443"], ["example.com.evil.test", "example.com:x@evil.test"]),
        (
            "intranet",
            ["intranet", "intranet:80", "intranet/a.b", "intranet2"],
            ["intranet.evil.test", "intranet@evil.test"],
        ),
        ("intranet:", ["intranet:80/a"], ["intranet:80@evil.test", "intranet:x@evil.test"]),
    ],
)
def test_a_host_of_one_label_or_before_a_port_permits_no_other_host(operand, fitting, strange):
    for name in ("host", "base_url", "server.hostname"):

        def lets_pass(value, name=name):
            nested = {"server": {"hostname": value}} if "." in name else {name: value}
            return verdict("allow", {"when": {name: {"starts_with": operand}}}, nested) == "allow"

        assert [value for value in fitting if not lets_pass(value)] == []
        assert [value for value in strange if lets_pass(value) or lets_pass([fitting[0], value])] == []


@promise("policy:allowed-url")
@pytest.mark.parametrize(
    ("operand", "value"),
    [
        ("git", "git.log -x"),
        ("report", "report.pdf"),
        ("user:", "user:x"),
        ("SELECT", "SELECT a.b"),
        ("main", "main.x"),
    ],
)
def test_one_word_that_is_no_host_permits_what_begins_with_it(operand, value):
    assert lets("starts_with", operand, value)
