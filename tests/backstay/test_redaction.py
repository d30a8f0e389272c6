import base64
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backstay.redaction.handles import handle_for, handles_in
from backstay.redaction.redactor import Redactor, mask, redact_payload
from tests.requirements import promise
from tests.sizes import sized, spread
from tests.work import calls_in

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
SCRAPS = st.lists(
    st.sampled_from(
        (
            *(
                "password",
                "token",
                "=",
                ":",
                '"',
                "'",
                "\\",
                "\n",
                " ",
                "Bearer ",
                "sk-",
                "a" * 20,
                "eyJ",
                ".",
                "://",
                "@",
            ),
            *(
                "&",
                "[REDACTED:",
                "]",
                "⟦secret:",
                "⟧",
                "x/y:",
                "hunter2hunter2",
                "{",
                "}",
                "[",
                "--",
                "<pin>",
                "</pin>",
            ),
            *("https", ","),
        )
    ),
    max_size=14,
).map("".join)
SECRET = "Zx9-" + "q7W" * 6


def shape(value):
    match value:
        case dict():
            return [shape(item) for item in value.values()]
        case list():
            return [shape(item) for item in value]
        case _:
            return None


@promise("secrets:total")
@given(JSON | SCRAPS | st.dictionaries(SCRAPS, SCRAPS | st.integers(), max_size=3) | st.lists(SCRAPS, max_size=3))
@settings(max_examples=sized(400, 100), deadline=None)
def test_redaction_is_total_idempotent_and_keeps_the_structure(payload):
    redactor = Redactor(["hunter2hunter2", "password"])
    once = redactor.redact(payload)
    assert redactor.redact(once) == once
    assert shape(once) == shape(payload)
    assert "hunter2hunter2" not in json.dumps(once)


@promise("secrets:handles")
@given(SCRAPS | st.dictionaries(SCRAPS, SCRAPS | JSON, max_size=3))
@settings(deadline=None)
def test_handles_are_left_alone_when_they_are_met_again(payload):
    def substitute(kind, value):
        return handle_for(b"key", "crm", kind, value)

    redactor = Redactor(["hunter2hunter2"])
    once = redactor.replace(payload, substitute)
    assert redactor.replace(once, substitute) == once
    assert redactor.redact(once) == once


PLACES = {
    "under a key": {"apiKey": SECRET},
    "under a key in another spelling": {"X_API-KEY": SECRET},
    "deep below a key": {"a": [{"credentials": {"user": "bo", "list": [SECRET, {"x": SECRET}]}}]},
    "in a header list of pairs": [["Accept", "*/*"], ["Authorization", f"Bearer {SECRET}"]],
    "in a header list of objects": [{"name": "X-Auth-Token", "value": SECRET}],
    "in a flat header list": ["Host", "x", "Cookie", SECRET],
    "in arguments of a command": ["curl", "--password", SECRET, "host"],
    "in a command line": f"mysql --user root --password {SECRET} host",
    "in the user part of an address": f"https://bo:{SECRET}@example.com/x",
    "in a query": f"https://example.com/x?page=2&access_token={SECRET}&y=1",
    "in a signed query": f"https://example.com/x?X-Amz-Signature={SECRET}",
    "in a connection string": f"Server=db;User Id=sa;Password={SECRET};Timeout=3",
    "in a database address": f"postgresql://app:{SECRET}@db/app",
    "in JSON in a text": json.dumps({"clientSecret": SECRET}),
    "in JSON in JSON in a text": {"body": json.dumps({"inner": json.dumps({"deep": {"secret": SECRET}})})},
    "in JSON inside a text": f'got {{"password": "{SECRET}"}} from there',
    "in escaped JSON inside a text": 'log: {\\"password\\": \\"' + SECRET + '\\"}',
    "in a value that stands twice": '{"password": "' + SECRET + '", "password": "[REDACTED:password]"}',
    "in YAML": f"user: bo\npassword: {SECRET}\n",
    "in an environment file": f"export DB_PASSWORD='{SECRET}'",
    "in XML": f"<auth><password>{SECRET}</password></auth>",
    "in a table": {"columns": ["user", "password"], "rows": [["bo", SECRET]]},
    "after Bearer": f"curl -H 'Authorization: Bearer {SECRET}'",
    "in basic authentication": "Basic " + base64.b64encode(f"bo:{SECRET}".encode()).decode(),
    "in a cookie header": f"Set-Cookie: sid={SECRET}; HttpOnly",
    "as a number": {"pin": 48151623},
    "behind a mask": {"password": f"[REDACTED:x]{SECRET}"},
    "in a token of a known form": "use sk-" + "x" * 20 + " and ghp_" + "y" * 36 + " and AKIA" + "Z" * 16,
    "in other forms": "xoxb-" + "1" * 12 + " AIza" + "z" * 35 + " sk_live_" + "4" * 16 + " glpat-" + "w" * 20,
    "in a signed token": "eyJ" + "h" * 20 + ".eyJ" + "p" * 20 + "." + "s" * 20,
    "in a private key": "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
    + SECRET
    + "\n-----END RSA PRIVATE KEY-----",
    "in a private key that is cut off": "-----BEGIN PRIVATE KEY-----\n" + SECRET,
    "in a key of an object": {"sk-" + "x" * 20: 1},
}
LEAKS = [SECRET, "48151623", "x" * 20, "y" * 36, "Z" * 16, "1" * 12, "z" * 35, "4" * 16, "w" * 20, "h" * 20, "s" * 20]


@promise("secrets:total")
@pytest.mark.parametrize("place", PLACES)
def test_no_secret_survives(place):
    redacted = json.dumps(redact_payload(PLACES[place]), ensure_ascii=False)
    assert "[REDACTED:" in redacted
    assert not [leak for leak in [*LEAKS, base64.b64encode(SECRET.encode()).decode()[:16]] if leak in redacted]


@promise("secrets:no-secret")
@pytest.mark.parametrize(
    "payload",
    [
        {"max_tokens": 5, "token_count": 3, "total_tokens": 9, "tokens": ["the", "cat"], "token_type": "Bearer"},
        {"pass": 3, "fail": 1, "passed": True, "password_required": False, "secretary": "Ann", "author": "Bo"},
        {"expires_in": 3600, "token_endpoint": "https://example.com/token", "compass": "north", "keys": ["a"]},
        "Please reset it: basic understanding of tokens, bearer of news. task-12 risk-free sk-learn",
        "def f(token: str = None) -> int: return get_token(x)",
        "2026-01-01T10:00:00Z GET http://127.0.0.1:8080/path?page=2 200 5ms",
        {"id": "4f2a", "email": "ana@example.com", "sha256": "ab" * 32, "uuid": "6f1c3e0e-9f3a-4a4e-8f7e-1c2d3e4f5a6b"},
        '{"kept": [1, 2.50],   "as": "it is"}',
    ],
)
def test_what_is_no_secret_stays(payload):
    assert redact_payload(payload) == payload


@promise("secrets:from-afar")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "Hunter2hunter2") for name in (
            "password_confirmation", "confirm_password", "password_reset_token", "confirmationToken",
            "updated_password", "revoke_token", "file_token", "password_hint",
        )),
        ("password", "to be or not to be on the moon"),
        ("DB_PASSWORD", "$uperSecret1"),
    ],
)  # fmt: skip
def test_words_beside_a_name_and_sentences_do_not_hide_a_secret(name, value):
    assert value not in str(redact_payload({name: value}))
    if " " not in value:
        assert value not in redact_payload(f"{name}={value}")


@promise("secrets:no-secret")
@pytest.mark.parametrize(
    "payload",
    [
        {"token_file": "/run/secrets/token", "passwordChangedAt": "2026-01-01", "secretKeyRef": {"name": "desk"}},
        {"errors": {"password": ["is too short (minimum is 12 characters)"]}},
        {"api_key": "${API_KEY}", "secret": "<your-secret>"},
    ],
)
def test_what_only_refers_to_a_secret_or_speaks_of_one_stays(payload):
    assert redact_payload(payload) == payload


@promise("secrets:total")
@pytest.mark.parametrize("around", ["_{}_", "*_{}_*", "bad key\\n{}", "bad key\\t{}\\r\\n", "%0A{}"])
@pytest.mark.parametrize(
    "token", ["AKIAQ7XB2M5LDV3KTRZW", "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2", "ghp_" + "a1B2c3D4e5F6" * 3]
)
def test_what_stands_right_before_a_token_does_not_hide_it(token, around):
    assert token not in str(redact_payload({"error": around.format(token)}))


@promise("secrets:redact")
def test_masks_say_what_was_there():
    assert redact_payload({"apiKey": "v", "url": "postgres://u:v@h/d"}) == {
        "apiKey": "[REDACTED:api_key]",
        "url": "postgres://u:[REDACTED:url_password]@h/d",
    }


@promise("secrets:redact")
def test_own_names_replace_the_usual_ones():
    assert redact_payload({"shoeSize": 43, "password": "x"}, ["shoe_size"]) == {
        "shoeSize": "[REDACTED:shoe_size]",
        "password": "x",
    }


@promise("secrets:secret-known")
@given(st.text(min_size=8, max_size=30).filter(lambda s: len(s.encode("utf-8", "surrogatepass")) >= 8))
@example("000000\\0²")
@example("abcdef\\n²")
@settings(deadline=None)
def test_a_known_secret_is_found_in_every_place_and_spelling(secret):
    spellings = [secret, json.dumps(secret)[1:-1], base64.b64encode(secret.encode()).decode()]
    payload = {f"k{secret}": [f"before{s}after" for s in spellings]}
    redacted = Redactor([secret]).redact(payload)
    assert list(redacted) == ["k[REDACTED:known]"]
    assert all("[REDACTED:" in text for text in redacted["k[REDACTED:known]"])


@promise("secrets:secret-known")
def test_a_known_number_is_found_among_numbers():
    assert Redactor(["12345678"]).redact([12345678, 1234567, 123456789.5]) == [
        "[REDACTED:known]",
        1234567,
        "[REDACTED:known]",
    ]


@promise("secrets:secret-known")
def test_short_known_values_are_not_looked_for():
    assert Redactor(["", "abc"]).redact("abc") == "abc"


@promise("secrets:logs")
def test_a_text_for_logs_is_redacted_like_a_payload():
    assert Redactor([SECRET]).text(f"failed with {SECRET}") == "failed with [REDACTED:known]"


@promise("secrets:handles")
def test_handles_take_the_place_of_secrets_and_tell_their_values():
    known = {}

    def substitute(kind, value):
        handle = handle_for(b"key", "crm", kind, value)
        known[handle] = value
        return handle

    shown = Redactor([]).replace({"next_page_token": "abc", "url": "https://a:b@c/", "pin": 12}, substitute)
    assert sorted(map(str, known.values())) == ["12", "abc", "b"]
    assert set(handles_in(shown)) == set(known)


@promise("secrets:odd-payloads")
def test_two_secrets_as_names_keep_both_entries():
    redacted = redact_payload({"sk-" + "a" * 20: 1, "sk-" + "b" * 20: 2})
    assert sorted(redacted.values()) == [1, 2]


@promise("secrets:odd-payloads")
@pytest.mark.parametrize(
    "piece",
    spread(
        [
            *(
                "a",
                "-eyJaaaaaaaaaa",
                "sk-",
                "-----BEGIN PRIVATE KEY-----",
                "://a:b",
                'password="',
                'password=\\"',
                "token=a ",
            ),
            *("⟦secret:", "[", "[REDACTED:", "bearer ", "\\", "--a ", "<a ", "<password>", "x: 5\n", '{"a":', "="),
            "password:\n",
        ],
        7,
    ),
)
@pytest.mark.timeout(400)
def test_a_long_hostile_text_is_redacted(piece):
    text = piece * (200_000 // len(piece))
    once = redact_payload({"x": text})
    assert redact_payload(once) == once


@promise("secrets:odd-payloads")
def test_blocks_within_blocks_are_looked_at_once():
    few, many = (
        "".join(" " * (number % 190) + "password: |\n" for number in range(count)) + " " * 191 + "x y\n" * 200
        for count in (100, 800)
    )
    assert calls_in(lambda: redact_payload(many)) < 12 * calls_in(lambda: redact_payload(few))


@promise("secrets:odd-payloads")
def test_values_that_are_no_json_are_redacted_too():
    loop = []
    loop.append(loop)
    redacted = redact_payload({1: loop, None: {"password": b"\x00"}, "set": {"b", "a"}, "big": 10**5000})
    assert redacted["null"] == {"password": "[REDACTED:password]"}
    assert redacted["set"] == ["a", "b"]
    json.dumps(redacted, allow_nan=False)


@promise("secrets:no-secret")
@pytest.mark.parametrize(
    "payload",
    [
        {"token_bucket": "limits-2024", "auth_provider": "oauth2-proxy-7", "password_policy": {"min": 12}},
        {"token": "USDC", "decimals": 6},
        {"credentials": {"user": "bo", "path": "/run/secrets/x", "expires_in": 3600}},
        {"Cookie": "theme=dark; lang=en"},
        {"secret": "projects/p1/secrets/db/versions/3"},
        "SELECT password FROM users WHERE token = $1",
        "$password = $_POST['password'] ?? '';",
        "--- PASS: TestTokenExpires (0.01s)",
    ],
)
def test_what_only_has_to_do_with_a_secret_stays(payload):
    assert redact_payload(payload) == payload


@promise("secrets:from-afar")
@pytest.mark.parametrize(
    "text",
    [
        f"AKIA{'Q7ZK' * 4}\n{'q7Zk+X4t0W' * 4}",
        "seed phrase: gossip ladder tuna zebra lizard able oyster dilemma globe catalog economy umbrella",
        "https://example.com/reset-password/q7ZkX4t0Wm9rB2vKx8Lw1Dj5Nc3Hs6Pf",
        "unlock it with the passphrase 'pepper_orbit_walnut_garden2'",
        "the backup code 4f2ac-19770 opens it",
    ],
)
def test_a_secret_is_told_by_what_leads_to_it(text):
    assert "[REDACTED:" in redact_payload(text)


@promise("secrets:from-afar")
@pytest.mark.parametrize(
    "text",
    [
        f"the token for the portal: {SECRET}",
        f"## API key\n\n    {SECRET}\n",
        f"<tr><th>API token</th><td>{SECRET}</td></tr>",
        f'SetEnv API_TOKEN "{SECRET}"',
        f"INSERT INTO t (name, api_key) VALUES ('x', '{SECRET}')",
        f"Das Passwort lautet {SECRET}",
        f"root:{SECRET}@tcp(127.0.0.1:3306)/db",
    ],
)
def test_a_secret_is_found_where_a_text_names_it_from_afar(text):
    assert SECRET not in redact_payload(text)


DATA = {"url": "cG9zdGdyZXM6Ly9hOmJAaA==", "host": "ZGIuaW50ZXJuYWw=", ".dockerconfigjson": "eyJhdXRocyI6e319"}
MANIFEST = {"apiVersion": "v1", "data": DATA, "kind": "Secret", "metadata": {"name": "desk"}}
LISTED = {name: value for name, value in MANIFEST.items() if name != "kind"}
MANIFEST_TEXT = """apiVersion: v1
data:
  url: cG9zdGdyZXM6Ly9hOmJAaA==
  host: "ZGIuaW50ZXJuYWw="
kind: Secret
metadata:
  name: desk
stringData:
  notes.txt: |
    walnut: orbit
    meadow
type: Opaque
"""
MANIFEST_LIST = "items:\n- " + MANIFEST_TEXT.rstrip().replace("\n", "\n  ") + "\n- kind: ConfigMap\n  data: {a: kept}\n"


@promise("secrets:manifests")
@pytest.mark.parametrize(
    "payload",
    [
        MANIFEST,
        {"kind": "List", "items": [MANIFEST]},
        {"kind": "SecretList", "items": [LISTED]},
        MANIFEST | {"data": {}, "stringData": DATA},
        json.dumps(MANIFEST),
        MANIFEST_TEXT,
        MANIFEST_TEXT.replace("kind: Secret\n", "").replace("data:\n", "kind: Secret\ndata:\n", 1),
        f"kind: ConfigMap\ndata:\n  a: kept\n---\n{MANIFEST_TEXT}",
        MANIFEST_LIST,
        MANIFEST_TEXT.replace("kind: Secret", "kind: Secret  # opaque"),
        MANIFEST_TEXT.replace("  host:", "# the host\n  # in the cluster\n  host:"),
        MANIFEST_LIST.replace("kind: Secret\n", "x: y\n").replace(
            "- kind: ConfigMap\n  data: {a: kept}\n", "kind: SecretList"
        ),
        f"$ kubectl get secret desk -o json\n{json.dumps(MANIFEST, indent=4)}\n$ cat x\n{{\n",
    ],
)
def test_all_data_of_a_secret_of_kubernetes_is_masked_under_any_name(payload):
    shown = json.dumps(redact_payload({"body": payload}))
    assert not [value for value in [*DATA.values(), "walnut", "orbit", "meadow"] if value in shown]
    assert "desk" in shown
    assert ("kept" in shown) == ("kept" in json.dumps(payload))
    assert redact_payload(json.loads(shown)) == json.loads(shown)


@promise("secrets:manifests")
def test_data_of_other_objects_and_placeholders_in_data_stay():
    kept = [
        MANIFEST | {"kind": "ConfigMap", "data": {"url": "db.internal"}},
        {"kind": "Secret", "data": {"url": "${URL}", "empty": ""}, "metadata": {"data": {"url": "kept"}}},
        MANIFEST_TEXT.replace("Secret", "ConfigMap"),
        'kind: Secret\ndata:\n  url: {{ .Values.url | b64enc }}\n  none: ""\nmetadata:\n  name: desk\n',
    ]
    assert redact_payload(kept) == kept


COOKIES = "user_session=q7ZkX4t0Wm9rB2vKx8; SSID=A8kLmQ2x"


@promise("secrets:curl")
@pytest.mark.parametrize(
    "command",
    [
        "curl 'https://example.com/' \\\n  -H 'accept: */*' \\\n  -b '{}' \\\n  -H 'x: y'",
        'curl -s -b "{}" https://example.com/',
        "curl -b $'{}' https://example.com/",
        'curl ^"https://example.com/^" ^\n  -b ^"{}^" ^\n',
        "curl --cookie '{}' https://example.com/",
    ],
)
def test_cookies_that_curl_sends_are_masked(command):
    assert redact_payload(command.format(COOKIES)) == command.format("[REDACTED:cookie]")
    for harmless in ("theme=dark; lang=en", "cookies.txt", "$COOKIES"):
        assert redact_payload(command.format(harmless)) == command.format(harmless)


@promise("secrets:curl")
def test_users_that_curl_signs_in_as_are_masked():
    for option in ("-u", "-u ", "-U", "-u'", "--user "):
        shown = redact_payload(f"curl -s {option}ana:walnut99 https://example.com/")
        assert shown == f"curl -s {option}ana:[REDACTED:password] https://example.com/"
    assert redact_payload("curl -u q7ZkX4t0Wm9rB2vKx8: x") == "curl -u [REDACTED:api_key]: x"
    for command in ("curl -u ana: x", "docker run -u1000:1000 curlimages/curl x", "curl -uana:$PASSWORD x"):
        assert redact_payload(command) == command
    joined = "curl -sSu ana:walnut99 'https://example.com/?a;b|c&&d' \\\n  -sb '{}'\n".replace("{}", COOKIES)
    shown = joined.replace("walnut99", "[REDACTED:password]").replace(COOKIES, "[REDACTED:cookie]")
    assert redact_payload(joined) == shown
    for body in ('"{\\"q\\":\\"a;b\\"}"', "'it'\\''s; x'", '^"a \\^"b;c\\^"^"', '"' + "a;b" * 5000 + '"'):
        shown = redact_payload(f"curl -d {body} -u ana:walnut99 x")
        assert shown == f"curl -d {body} -u ana:[REDACTED:password] x"


@promise("secrets:curl")
@pytest.mark.parametrize("joint", [" && ", "; ", " | ", " || ", "\n"])
def test_options_of_other_commands_than_curl_stay(joint):
    for command in ("git checkout -b feature=abc12345xyz", "docker run -u app:app x", "run -uapp:app12 x"):
        for text in (f"{command}{joint}curl x", f"curl x{joint}{command}"):
            assert redact_payload(text) == text


KEY_LINES = ["DEK-Info: AES-256-CBC,4F2A", "", *(f"q7Zk/X4t0Wm9rB2vKx8Lw{number}" for number in range(3)), "ab=="]
KEY_FILE = ["begin", "-----BEGIN RSA PRIVATE KEY-----", *KEY_LINES, "-----END RSA PRIVATE KEY-----", "end"]


def escaped(value):
    """Return JSON as PHP and .NET write it."""
    text = json.dumps(value)
    for sign in "&+='":
        text = text.replace(sign, f"\\u{ord(sign):04X}")
    return text.replace("/", "\\/")


ESCAPED = {
    "a signed URL": {"url": f"https://example.com/x?X-Amz-Date=1&X-Amz-Signature={SECRET}&y=2"},
    "a connection string": {"note": f"AccountKey={SECRET}+x9/Wm==;EndpointSuffix=core"},
    "a password in a URL": {"a": [1.0, {"target": f"https://bo:{SECRET}@example.com/x"}]},
    "a webhook": {"to": f"https://hooks.slack.com/services/T0AB/{SECRET}"},
    "a header": {"headers": [{"name": "Authorization", "value": f"Basic {SECRET}/{SECRET}"}]},
}


@promise("secrets:json-lines")
@pytest.mark.parametrize("place", ESCAPED)
def test_secrets_in_escaped_json_are_found_in_lines_and_in_other_texts(place):
    held = escaped(ESCAPED[place])
    lines = f'{{"n": 1.10}}\r\n{held}\r\n{{"end": "a\\/b"}}'
    log = f"10:00 INFO sent {held} in 5 ms\n10:01 INFO done"
    for text in (lines, log):
        shown = redact_payload({"stdout": text})["stdout"]
        assert SECRET not in shown
        assert "Wm" not in shown
        assert shown.count("\n") == text.count("\n")
        before, _, after = text.partition(held)
        assert shown.startswith(before)
        assert shown.endswith(after)
        json.loads(shown.removeprefix(before).removesuffix(after))
        assert redact_payload(shown) == shown
    if place != "a header":
        assert SECRET not in redact_payload(f"<script>send({held[:-1]}, x: 1}})</script>")


@promise("secrets:json-lines")
def test_lines_of_json_are_looked_at_together_and_stay_as_they_are_written():
    key = "\n".join(json.dumps({"at": "a/b", "line": f"{line}\n"}).replace("/", "\\/") for line in KEY_FILE)
    shown = redact_payload(key)
    assert not [line for line in filter(None, KEY_LINES) if line in shown or line.replace("/", "\\/") in shown]
    assert [json.loads(line)["at"] for line in shown.split("\n")] == ["a/b"] * len(KEY_FILE)
    for text in ('{"a":1,"a":2, "b":"\\u0026"}\n{"c": 1.10}', '  {"b":"\\/"} x {\n{"\\u00', '{"a":"\\/"}\n{"b":}\n[]'):
        assert redact_payload(text) == text
    assert "walnut" not in redact_payload('{"a":1,"a":2,"password":"\\u0026walnut"}\n{"b":2}\n')
    secret = json.dumps(MANIFEST)
    assert DATA["url"] not in redact_payload(f"annotations:\n  last: |\n    {secret}\n{secret}")


CHOSEN = ["k9Vq2<aLm8xT", "k9&Vq2;Lm8xTz4", "W]8,kR{2;vQ9|tLx4&Zp", "ab9'cd\"7x", "{k9[2]}vQ", "k9<2>vQ;;x", "b2;c3d=="]


@promise("secrets:unquoted")
@pytest.mark.parametrize("secret", CHOSEN)
@pytest.mark.parametrize(
    "setting",
    [
        "DB_PASSWORD={}",
        "PORT=80\nexport DB_PASSWORD={}\nDEBUG=1",
        "conf/.env:12:DB_PASSWORD={}",
        "spring.datasource.password={}",
        "services:\n  web:\n    environment:\n      - DB_PASSWORD={}\n",
        "Environment=DB_PASSWORD={}\n",
    ],
)
def test_an_unquoted_value_is_masked_to_its_end(setting, secret):
    shown = redact_payload({"Env": ["LANG=C", setting.format(secret)]})["Env"][1]
    assert shown == setting.format("[REDACTED:password]")


@promise("secrets:unquoted")
@pytest.mark.parametrize("secret", ["ab9,cd9xk2", "k9'Vq2{Lm8}", "a9]1[b,c'd", "Xk92;meadow", "Kx9T4w;orbit&Lm8zQ2vR"])
@pytest.mark.parametrize(
    "text", ["db:\n  user: bo\n  password: {}\n  port: 1", "environment:\n  - DB_PASSWORD={}\n  - PORT=1"]
)
def test_an_unquoted_password_of_yaml_is_masked_to_its_end(text, secret):
    assert redact_payload(text.replace("{}", secret)) == text.replace("{}", "[REDACTED:password]")


@promise("secrets:yaml-values")
@pytest.mark.parametrize(
    "text",
    [
        "db_password: |\n  {}\nuser: bo\n",
        "db:\n  db_password: |-\n    {}\n  user: bo\n",
        "- db_password: >-  # folded\n    {}\n  user: bo\n",
        "db_password: |2\r\n    {}\r\nuser: bo\r\n",
        "db_password: !unsafe {}\nuser: bo\n",
        "db_password: !!str {}\nuser: bo\n",
        "db_password: &pw {}\nuser: bo\n",
        "db_password: !unsafe |\n  {}\nuser: bo\n",
    ],
)
def test_a_value_of_yaml_is_found_in_a_block_and_behind_a_tag(text):
    for secret in ("vN4k9xQ2", "234%234xk"):
        assert redact_payload(text.format(secret)) == text.format("[REDACTED:password]")


@promise("secrets:yaml-values")
def test_a_block_of_yaml_is_masked_to_its_end_and_prose_or_a_reference_stays():
    block = "  api_key: |\n    q7ZkX4t0\n\n    Wm9rB2vK\n  user: bo\n"
    assert redact_payload(block) == "  api_key: |\n    [REDACTED:api_key]\n  user: bo\n"
    for text in (
        "password: |\n  The password of the user.\nuser: bo\n",
        "token: |\n  To get a token,\n  ask Ana\n",
        "password: |\n  ${{ secrets.DB }}\n",
        "password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  3864\n",
        "password: !Ref DbPassword9\n",
        "password: *pw\n",
        "password: |\nuser: walnut99\n",
        "token: |\n  JWT\n  opaque\n",
        "password: |\n  echo $PW1\n",
        "password: |\n  see the other file\n",
        "password: |\n  passphrase: |\n",
    ):
        assert redact_payload(text) == text


@promise("secrets:connection-strings")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Driver={{ODBC Driver 18}};Uid=ana;Pwd={{{}}};Encrypt=yes", "pwd"),
        ("PWD={{{}}};UID=ana", "pwd"),
        ("jdbc:sqlserver://desk:1433;user=sa;password={{{}}}", "password"),
        ('conn = "Server=desk;Password={{{}}}"', "password"),
    ],
)
def test_a_password_in_braces_of_a_connection_string_is_masked_to_its_end(text, kind):
    for secret in ("Zx81kkQ2pw", "a;b9,x", "k9}}b{c", "walnut&meadow"):
        assert redact_payload(text.format(secret)) == text.format(f"[REDACTED:{kind}]")
    for placeholder in ("your_password_here", "password", "db.pw2", "{pwd}"):
        assert redact_payload(text.format(placeholder)) == text.format(placeholder)


@promise("secrets:connection-strings")
@pytest.mark.parametrize("secret", ["ab,c9xk2", "k9&Vq2", "k9{2}[x]", "a9<7>c|d"])
def test_a_password_of_a_connection_string_is_masked_to_the_semicolon(secret):
    for text in ("Server=desk;Password={};Uid=ana", 'x = "Server=desk;Password={}","y"'):
        assert redact_payload(text.format(secret)) == text.format("[REDACTED:password]")


@promise("secrets:unquoted")
@pytest.mark.parametrize("secret", ["vK2p Q9dX 8sLm Rt4W Zx81 kkQ2", "qwod kfhe xnzb lmtr"])
@pytest.mark.parametrize("setting", ["WP_APP_PASSWORD={}\nX=1", "app password: {}", "password: {}.\nBye"])
def test_a_password_that_is_shown_in_groups_is_masked_whole(setting, secret):
    assert redact_payload(setting.format(secret)) == setting.format("[REDACTED:password]")


@promise("secrets:unquoted")
@pytest.mark.parametrize(
    "text",
    [
        "PGPASSWORD={} psql -c 'drop table users'",
        "DB_PASSWORD={}; rm -rf /srv",
        "DB_PASSWORD={};reboot",
        "DB_PASSWORD={}&&/bin/rm -r x",
        "PWD={};UID=bo;SERVER=desk",
        "password={}&user=bo",
        "{{password: {}, user: bo}}",
        "    password={},\n    user=1",
        'say "DB_PASSWORD={}","USER=bo"',
        "Password: {}, and the user is bo",
        "PASSWORD={}\\nUSER=bo",
        "DB_PASSWORD={}<br>",
    ],
)
def test_what_follows_an_unquoted_value_stays(text):
    assert redact_payload(text.format("abc9xk2p")).replace("[REDACTED:pwd]", "[REDACTED:password]") == text.format(
        "[REDACTED:password]"
    )


@promise("secrets:unquoted")
@pytest.mark.parametrize(
    "text",
    [
        "Password: it's in the vault, ask Ana",
        "Password: must have some text",
        "AUTH=basic|oauth2|none",
        'CREDENTIALS={"type":"service_account","v1":2}',
        "SECRET_KEY={{ vault_key1 }}",
        "password: [one1, two2]",
        "password: {type: String1}",
        "let password={value:'a1'};",
        "password={id: 1};",
        'password=f"{user1}"',
        "password=%{PW1}",
        "- Password: sent last week okay",
        "pass: four five nine zero",
    ],
)
def test_words_behind_a_name_are_not_taken_for_an_unquoted_secret(text):
    assert redact_payload(text) == text


@promise("secrets:key-lines")
@pytest.mark.parametrize(
    "rows",
    [
        KEY_FILE,
        [f"{line}\n" for line in KEY_FILE],
        [[line] for line in KEY_FILE],
        [["2026-01-01", line, 7] for line in KEY_FILE],
        [{"ts": at, "line": line} for at, line in enumerate(KEY_FILE)],
        [{"_source": {"tags": ["a", "b"], "message": line}} for line in KEY_FILE],
    ],
)
def test_a_private_key_is_found_in_the_lines_of_a_list(rows):
    for payload in ({"rows": rows}, {"body": json.dumps({"cells": [{"source": rows}]})}):
        shown = json.dumps(redact_payload(payload))
        assert not [line for line in filter(None, KEY_LINES) if line in shown]
        assert "begin" in shown
        assert "end" in shown
        assert redact_payload(redact_payload(payload)) == redact_payload(payload)
    cut = redact_payload([*rows[:5], rows[-1]])
    assert cut[-1] == rows[-1]
    assert KEY_LINES[2] not in json.dumps(cut)


@promise("secrets:key-lines")
def test_lines_of_a_private_key_may_have_numbers_or_times_in_front():
    for front in ("{:>6}\t", "{}: ", "2026-01-01 10:00:0{} "):
        rows = [front.format(at) + line for at, line in enumerate(KEY_FILE) if "DEK" not in line and line]
        shown = redact_payload(rows)
        assert not [line for line in KEY_LINES[2:] if line in json.dumps(shown)]
        assert shown[-1] == rows[-1]


@promise("secrets:key-lines")
def test_what_follows_a_private_key_in_a_list_stays():
    key = "\n".join(KEY_FILE)
    for payload in ([key, "q7Zk4X4t0Wm9rB2vKx8Lw"], [{"a": KEY_FILE[1]}, {"b": "a word"}], [KEY_FILE[1], "a word"]):
        assert redact_payload(payload)[1] == payload[1]


@promise("secrets:key-lines")
@pytest.mark.parametrize(
    "between",
    [
        ["apples", "-----END CERTIFICATE-----", "pears"],
        ["apples", "-----END RSA PUBLIC KEY-----", "pears"],
        ["apples", "it is pears today", "plums", KEY_FILE[-2]],
    ],
)
def test_only_what_an_own_end_closes_belongs_to_a_private_key_in_a_list(between):
    for rows in ([KEY_FILE[1], *between, "end"], [{"a": row} for row in (KEY_FILE[1], *between, "end")]):
        assert redact_payload(rows)[1:] == rows[1:]


CLIENT_TABLE = "+------+----+\n| user | password |\n+------+----+\n| bo | {0} |\n| cy | {1} |\n+------+----+\n"


@promise("secrets:tables")
@pytest.mark.parametrize(
    "table",
    [
        " id | login |   password\n----+-------+--------------\n  1 | bo    | {0}\n  2 | cy    | {1}\n(2 rows)\n",
        CLIENT_TABLE,
        CLIENT_TABLE.replace("\n", "\r\n"),
        CLIENT_TABLE.translate(str.maketrans("|+-", "\u2502\u253c\u2500")),
        CLIENT_TABLE.translate(str.maketrans("|+-", "\u2551\u256c\u2550")),
        CLIENT_TABLE.translate(str.maketrans("|+-", "\u2502\u2547\u2501")).replace("\u2502", "\u2503", 3),
    ],
)
def test_a_column_of_secrets_is_found_in_a_table_that_a_client_draws(table):
    redacted = redact_payload({"stdout": table.format("Zx81kkQ2pw", "maplewalnut")})["stdout"]
    assert redacted == table.format(*["[REDACTED:password]"] * 2)


@promise("secrets:tables")
def test_a_table_ends_where_its_columns_end():
    text = "name,password\n-----\nHello, everybody\n"
    assert redact_payload(text) == text
    text = "user | password\n-------------\nbo | {}\n-------------\nuser | everybody\n"
    assert redact_payload(text.format("maplewalnut")) == text.format("[REDACTED:password]")
    text = "| name | password |\n|---|---|\n| bo | {} |\n\nname | everybody\n"
    assert redact_payload(text.format("maplewalnut")) == text.format("[REDACTED:password]")
    text = "| name | password |\n|---|---|\n| bo | {} |\n---\n| name | everybody |\n"
    assert redact_payload(text.format("maplewalnut")) == text.format("[REDACTED:password]")
    other = CLIENT_TABLE.replace("password", "city").format("Oslo", "Paris")
    for text in (CLIENT_TABLE, CLIENT_TABLE.translate(str.maketrans("|+-", "\u2502\u253c\u2500"))):
        assert redact_payload(text.format("maplewalnut", "b") + other).endswith(other)


SMALL, CAPITALS, UUID = "k3v9x0q7w2z8m4t6r1y5b0n7", "Q7ZK" * 9 + "X4T0", "9f3c1a7e-5b2d-4e8f-a6c0-7d1b3e5f9a2c"
BASE64, FOR_ADDRESSES = "q7Zk+X4t0Wm9/rB2vKx8Lw1Dj5Nc3Hs6Pf0Gy7Ua4Qe=", "q7Zk-X4t0Wm9_rB2vKx8Lw1Dj5Nc3Hs6Pf0Gy7Ua4Qe"
DIGEST = "0a1b2c3d4e" * 4


@promise("secrets:bare")
@pytest.mark.parametrize("secret", [SMALL, SMALL * 2, SMALL * 4, CAPITALS, UUID, BASE64, FOR_ADDRESSES])
@pytest.mark.parametrize(
    "sentence",
    [
        "Please use {} for the staging account.",
        "Never show {} to anybody else, please.",
        "La clé du service : {}, ne la donne pas.",
        '{{"id": 7, "note": "we have to rotate {} soon"}}',
        "Key for the weather service \u2192 {}",
        "Hi Ana,\n\nthis is what you will be asked for:\n\n{}\n\nKeep it to yourself.",
        "10:41 <mika> what was the token?\n10:42 <joon> {}",
    ],
)
def test_a_secret_in_a_sentence_is_found_without_a_name(sentence, secret):
    assert secret not in redact_payload({"text": sentence.format(secret)})["text"]


@promise("secrets:bare-things")
@pytest.mark.parametrize(
    "payload",
    [
        f"Order {UUID} has shipped, and the order that is late is {UUID}.",
        f"I moved event {SMALL} to Monday and told Ana.",
        f"Parcel {CAPITALS} waits at the post office.",
        {"id": SMALL, "note": f"Please use {SMALL} when you write to us."},
        json.dumps({"events": [{"id": SMALL}], "note": f"Please use {SMALL} when you write to us."}),
        {"event": SMALL, "tracking": CAPITALS, "run": UUID},
        f"worker {UUID} started\nhttps://example.com/x/{SMALL} was opened by Ana",
        f"The commit before was {'0a1b2c3d4e' * 4}, as far as we know.",
        "Das ist die Rechtsschutzversicherungsgesellschaft12 und sonst nichts.",
        f"The token refresh was fixed in {DIGEST} by Ana.",
        f"auth fix: {DIGEST}",
        f"see commit {DIGEST} for the token cleanup",
        f"userId: {SMALL} was seen today",
        f"{SMALL} was published and nobody saw it",
        f"Run {SMALL} succeeded",
        f"preload app-{SMALL}.js",
        f"lookup key {UUID} not found in the table",
        f"I found these for you:\n- {UUID}\n- {UUID[::-1]}",
        f"Please open documents/users/{SMALL}Xy and read it to me.",
        f"the sha256 in base64 is {BASE64}",
        "the decoded form of bWVhZG93IG9yYml0IHJvY2tldCBtYXBsZSBsYW50ZXJu is easy to read",
    ],
)
def test_what_a_sentence_calls_a_thing_or_has_as_a_field_beside_it_stays(payload):
    assert redact_payload(payload) == payload


@promise("secrets:json-text")
@pytest.mark.parametrize(
    "text",
    [
        "[1.0, NaN, 2.0]",
        '{"a":1,"a":2,\n "b":3}',
        '{"a": 1e999, "b": [-Infinity]}',
        f"[{'7' * 400}]",
        r'{"a":"\u0070\ud800", "b": 1.10}',
        '{"token": {"type": "string"},  "n":12345678901234567890.123456789}',
    ],
)
def test_json_text_without_a_secret_stays_as_it_is_written(text):
    assert redact_payload({"body": text}) == {"body": text}


@promise("secrets:json-text")
def test_of_json_text_with_secrets_only_these_are_written_anew():
    text = '{"a":1.0, "api_key":"hunter2hunter2","password" : "Tr0ub\\"4dor&3",\n"pin":48213377,"b": [NaN]}'
    told = '{"a":1.0, "api_key":"[REDACTED:api_key]","password" : "[REDACTED:password]",'
    assert redact_payload(f" {text} ") == f' {told}\n"pin":"[REDACTED:pin]","b": [NaN]}} '
    many = ",".join(f'"password":"hunter{number}hunter2"' for number in range(9))
    assert "hunter" not in redact_payload(f"{{{many}}}")
    assert "hunter" not in redact_payload(f"{'[' * 120}{text}{']' * 120}")
    key = '{"kty":"RSA","d":"abcdef1234567890","d":"x"}'
    assert "abcdef" not in redact_payload(key)


@promise("secrets:json-text")
@pytest.mark.parametrize("more", range(1, 8))
def test_json_text_in_which_a_name_is_there_again_is_read_as_others_read_it(more):
    again = ",".join(['"a":1'] * more)
    plain = f'{{{again},"b":[{{"c":"d"}}],\n"e":1.0}}'
    assert redact_payload(plain) == plain
    text = f'{{{again},"b":[{{"password":"hunter2Hx1"}}]}}'
    assert json.loads(redact_payload(text)) == {"a": 1, "b": [{"password": "[REDACTED:password]"}]}
    header = '{"name":"Authorization","value":"my plain secret","value":"other words"}'
    assert "secret" not in redact_payload(header)
    assert json.loads(redact_payload(header))["value"] == "[REDACTED:authorization]"


def nested(levels, odd):
    """Return JSON text within JSON text, each written without a quotation mark of its own."""
    text = "{}"
    for _ in range(levels):
        inner = json.dumps(text)[1:-1].replace('\\"', "\\u0022")
        text = f'["{inner}",{"[" * 100}{"]" * 100}]' if odd else f'{{"a":1,"a":2,"a":3,"a":4,"b":"{inner}"}}'
    return text


@promise("secrets:json-text")
@pytest.mark.parametrize("odd", [False, True])
def test_each_text_in_nested_json_is_looked_at_once(odd):
    assert json.loads(redact_payload(nested(24, odd)))


@promise("secrets:json-text")
def test_known_digits_are_not_shown_within_numbers_that_nothing_can_hold():
    known = "73918264550917366420"
    for number in (f"{known}{'0' * 400}", f"{known}.5e400"):
        assert known not in Redactor({known}).replace(f'{{"a": {number}}}', mask)
