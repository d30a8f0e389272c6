import hashlib
import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.canonical import canonical
from backstay.digests.digest import Purpose, clean_json, digest_of_result, summarize_payload, words_of
from tests.requirements import promise
from tests.sizes import sized

KEYS = ["label", "original_size", "truncated", "schema", "sample", "aggregates", "notes", "storage_ref"]
PURPOSES = ["for_planning", "for_user", "for_debug"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(alphabet=st.characters()), inner, max_size=6),
    max_leaves=40,
)
WIDE = st.builds(
    lambda name, columns, rows: [{f"{name}{c}": f"{name}{r}" * 3 for c in range(columns)} for r in range(rows)],
    st.text(max_size=30),
    st.integers(0, 150),
    st.integers(0, 20),
)
ROWS = [
    {"id": n, "due": f"2026-01-{n % 28 + 1:02d}", "amount": n * 2.5 if n % 10 else None, "city": ["Rom", "Bern"][n % 2]}
    for n in range(1000)
]


@promise("context:digest-keys")
@given(st.text(alphabet=st.characters()), JSON | WIDE | st.binary(), st.sampled_from(PURPOSES), st.integers(400, 5000))
@settings(max_examples=sized(200, 50), deadline=None)
def test_a_digest_has_eight_keys_and_fits_whatever_the_payload(label, payload, purpose, max_chars):
    digest = summarize_payload(label, payload, purpose=purpose, max_chars=max_chars)
    assert list(digest) == KEYS
    assert len(canonical(digest)) <= max_chars
    canonical(digest).encode()
    assert digest == summarize_payload(label, payload, purpose=purpose, max_chars=max_chars)


@promise("secrets:library")
@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_a_summary_for_any_purpose_holds_no_secret_of_the_payload(purpose):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    rows = [{"user": f"u{n}", "password": f"hunter2-{n}", "note": f"use {token}"} for n in range(30)]
    said = json.dumps(summarize_payload(f"leak {token}", rows, purpose=purpose))
    assert ("hunter2" in said, token in said) == (False, False)


@promise("context:tables")
def test_a_table_is_told_in_columns():
    digest = summarize_payload("invoices", {"items": ROWS, "next": None})
    assert digest["original_size"] == {"bytes": len(canonical({"items": ROWS, "next": None}).encode()), "rows": 1000}
    assert digest["truncated"]
    assert digest["aggregates"] == {
        "table": "items",
        "rows": 1000,
        "columns": {
            "id": {"type": "number", "count": 1000, "sum": 499500, "min": 0, "max": 999, "mean": 499.5},
            "due": {
                "type": "date",
                "count": 1000,
                "earliest": "2026-01-01",
                "latest": "2026-01-28",
                "distinct": 28,
                "frequent": dict.fromkeys((f"2026-01-0{n}" for n in range(1, 6)), 36),
            },
            "amount": {
                "type": "number",
                "count": 900,
                "null_rate": 0.1,
                "sum": sum(row["amount"] or 0 for row in ROWS),
                "min": 2.5,
                "max": 2497.5,
                "mean": 1250.0,
            },
            "city": {"type": "string", "count": 1000, "distinct": 2, "frequent": {"Bern": 500, "Rom": 500}},
        },
    }
    assert [row["id"] for row in digest["sample"]] == [0, 499, 999]
    assert digest["notes"] == ["amount: 100 of 1000 empty"]
    assert digest["schema"]["properties"]["items"]["items"]["properties"]["amount"] == {"type": ["null", "number"]}


@promise("context:true-figures")
@pytest.mark.parametrize(
    ("values", "figures"),
    [
        ([1e-7] * 3, {"sum": 3e-7, "mean": 1e-7}),
        ([0.1, 0.2], {"sum": 0.3, "mean": 0.15}),
        ([123456789012.34, 0.01], {"sum": 123456789012.35, "mean": 61728394506.175}),
        ([1, 1e-9], {"sum": 1.000000001, "mean": 0.5000000005}),
    ],
)
def test_the_figures_of_a_column_are_right_however_small_or_large_they_are(values, figures):
    told = summarize_payload("x", [{"n": value} for value in values])["aggregates"]["columns"]["n"]
    assert {name: told[name] for name in figures} == figures


@promise("context:true-figures")
def test_a_value_that_is_seldom_missing_is_missing_at_times():
    rows = [{"n": None if at == 0 else 1} for at in range(30_000)]
    assert summarize_payload("x", rows)["aggregates"]["columns"]["n"]["null_rate"] == 3.333e-05


@promise("context:true-figures")
@pytest.mark.parametrize(("filled", "rate"), [(1, 29_999 / 30_000), (0, 1), (3, 0.9999)])
def test_only_a_column_without_a_value_is_missing_always(filled, rate):
    rows = [{"n": 1 if at < filled else None} for at in range(30_000)]
    assert summarize_payload("x", rows)["aggregates"]["columns"]["n"]["null_rate"] == rate


@promise("context:true-figures")
def test_long_texts_that_begin_alike_are_counted_apart_and_named_as_cut():
    alike = "https://files.example/reports/" + "a" * 100
    texts = [alike + "1"] * 2 + [alike + "2"] * 3 + ["short"] * 2
    told = summarize_payload("x", [{"at": text} for text in texts])["aggregates"]["columns"]["at"]
    assert (told["distinct"], told["frequent"]) == (3, {f"{alike[:100]}…": 3, "short": 2})


@promise("context:purposes")
def test_the_purposes_tell_different_things():
    planning, user, debug = (summarize_payload("x", ROWS, purpose=purpose) for purpose in PURPOSES)
    assert len(planning["sample"]) < len(user["sample"]) < len(debug["sample"])
    assert user["notes"][0] == "A table of 1000 rows with id, due, amount, city."
    assert user["schema"] == {"type": "array", "items": {"type": "object"}}
    assert "properties" in planning["schema"]["items"]
    assert debug["notes"][0] == "sha256 " + hashlib.sha256(canonical(ROWS).encode()).hexdigest()


@promise("context:oddities")
def test_oddities_are_noted():
    rows = [
        {"a": 1, "b": "x" * 5000},
        {"a": "one", "b": "y"},
        {"a": float("nan"), "b": "z"},
        *({"b": "w"} for _ in range(600)),
    ]
    assert summarize_payload("x", rows)["notes"] == [
        "a: 600 of 603 empty",
        "a: mixed types: number 1, string 2",
        "a: 1 not a number",
        "values shortened in the sample: 1",
    ]


PRODUCT = {
    "name": "T-Shirt",
    "product_id": "9523456873",
    "variants": {
        str(9612497925 + n * 777): {
            "item_id": str(9612497925 + n * 777),
            "options": {"color": "blue", "size": "M", "material": "cotton", "style": "crew neck"},
            "available": n % 3 > 0,
            "price": 46.85 + n,
        }
        for n in range(400)
    },
}
VARIANTS = PRODUCT["variants"]


@promise("context:entries-by-id")
def test_an_object_keyed_by_ids_is_told_as_a_table_with_whole_entries():
    for payload, path in ((PRODUCT, {"table": "variants"}), (VARIANTS, {})):
        digest = digest_of_result("retail", payload, "r")
        sample = digest["sample"]
        assert len(sample) == 3
        assert all(VARIANTS[key]["price"] == entry["price"] for key, entry in sample.items())
        assert sample["9612497925"] == VARIANTS["9612497925"]
        told = digest["aggregates"]
        assert {key: told[key] for key in path} == path
        assert told["rows"] == 400
        assert told["columns"]["price"]["max"] == 445.85
        of_entries = digest["schema"]["properties"]["variants"] if path else digest["schema"]
        assert of_entries["additionalProperties"]["properties"]["price"] == {"type": "number"}
        assert told.get("beside") == ({"name": "T-Shirt", "product_id": "9523456873"} if path else None)


@promise("context:entries-by-id")
def test_unlike_parts_of_a_record_are_no_entries():
    record = {"name": {"first": "x" * 900}, "address": {"city": "y" * 900}, "pay": {"card": 1}, "order": {"id": 2}}
    assert summarize_payload("x", record, max_chars=1000)["aggregates"] == {"entries": 4}


@promise("context:entries")
@given(
    st.integers(2, 400),
    st.integers(1, 60),
    st.integers(1, 3000),
    st.sampled_from(["list", "keyed", "within", "record"]),
)
@settings(max_examples=sized(150, 40), deadline=None)
def test_a_digest_always_shows_an_entry_and_a_whole_one_where_it_has_room(entries, fields, length, form):
    entry = {f"field_{n}": "v" * (length // fields) for n in range(fields)}
    rows = [{**entry, "n": n} for n in range(entries)]
    keyed = {f"{n:010}": row for n, row in enumerate(rows)}
    payload = {"list": rows, "keyed": keyed, "within": {"total": 7, "found": keyed}, "record": entry}[form]
    sample = digest_of_result("x", payload, "r" * 40, whole_under=100).get("sample")
    if sample is None:
        return
    assert sample
    first = sample[0] if isinstance(sample, list) else sample
    if form != "record" and len(canonical(rows[0])) <= 1200:
        assert canonical(rows[0])[1:-1] in canonical(sample)
    assert first


@promise("context:entries-task")
def test_fields_that_the_task_names_are_shown_where_there_is_no_room_for_all():
    wide = [{**{f"column_{n:03}": "w" * 90 for n in range(150)}, "unitPrice": n, "zone": "z"} for n in range(50)]
    for payload in (wide, {str(n): row for n, row in enumerate(wide)}):
        plain = digest_of_result("x", payload, "r")
        told = digest_of_result("x", payload, "r", wanted=words_of("Which has the lowest PRICE in its zone?"))
        assert "unitPrice" not in canonical(plain["sample"])
        assert "unitPrice" not in plain["aggregates"]["columns"]
        first = told["sample"][0] if isinstance(payload, list) else told["sample"]["0"]
        assert (first["unitPrice"], first["zone"]) == (0, "z")
        assert told["aggregates"]["columns"]["unitPrice"]["max"] == 49


@promise("context:entries-size")
def test_a_digest_is_as_long_as_it_may_be():
    short, long = (digest_of_result("x", PRODUCT, "r", max_chars=size) for size in (1000, 9000))
    assert len(canonical(short)) <= 1000 < len(canonical(long)) <= 9000
    assert next(iter(short["sample"].values()))["price"] == 46.85


@promise("context:summarize-lines")
def test_a_text_is_told_by_its_head_and_tail():
    text = "\n".join(f"line {n}" for n in range(5000))
    digest = summarize_payload("log", text)
    assert digest["original_size"] == {"bytes": len(text), "rows": 5000}
    assert digest["aggregates"] == {"characters": len(text), "lines": 5000, "longest_line": 9}
    assert text.startswith(digest["sample"]["head"])
    assert text.endswith(digest["sample"]["tail"])


@promise("context:summarize-lines")
def test_a_log_is_told_by_levels_times_and_what_its_lines_have_in_common():
    level = ["INFO"] * 7 + ["ERROR"] + ["INFO"] * 92
    lines = [
        f"2026-03-0{1 + n // 1000}T10:{n % 60:02d}:00.{n % 10}Z {level[n % 100]} job {n} took {n % 9} ms"
        for n in range(2500)
    ]
    digest = summarize_payload("log", "\n".join(lines), purpose="for_user")
    told = digest["aggregates"]
    assert told["levels"] == {"error": 25, "info": 2475}
    assert (told["earliest"], told["latest"]) == ("2026-03-01T10:00:00", "2026-03-03T10:59:00")
    assert told["frequent"] == {"INFO job # took # ms": 2475, "ERROR job # took # ms": 25}
    assert digest["notes"][0].startswith("A log of 2500 lines")
    assert digest["notes"][1].startswith(f"25 of 2500 lines report errors; the first: {lines[7][:40]}")


@promise("context:summarize-lines")
@pytest.mark.parametrize(
    "line", ["[error] it broke", "level=error msg=broke", '{"level": "error"} x', "12:00 FATAL: no"]
)
def test_a_level_is_read_as_loggers_write_it(line):
    told = summarize_payload("log", "\n".join([line] * 9))["aggregates"]
    assert told["levels"] == {"critical" if "FATAL" in line else "error": 9}


@promise("context:summarize-lines")
def test_words_that_only_look_like_levels_make_no_log():
    text = "\n".join(f"The error of line {n} is a matter of INFO/desk and of warnings." for n in range(50))
    assert summarize_payload("letter", text)["aggregates"].keys() == {"characters", "lines", "longest_line"}


@promise("context:summarize-lines")
def test_a_thread_of_mails_is_told_by_who_wrote_about_what():
    mails = [f"From: {who}@example.com\nDate: today\nSubject: Re: the boat\n\nAye." for who in ("ana", "bo", "ana")]
    told = summarize_payload("thread", "\n\n".join(mails))["aggregates"]
    assert told["mails"] == 3
    assert told["from"] == {"ana@example.com": 2, "bo@example.com": 1}
    assert told["subjects"] == {"Re: the boat": 3}


@promise("context:oddities")
def test_what_lies_far_out_is_noted():
    amounts = [{"amount": 10 + n % 5} for n in range(99)]
    assert summarize_payload("calm", amounts)["notes"] == []
    assert (
        "amount: the largest, 90000, is 99 times the mean"
        in summarize_payload("odd", [*amounts, {"amount": 90_000}])["notes"]
    )


@promise("context:other-payloads")
def test_a_text_that_holds_json_is_told_like_json():
    digest = summarize_payload("x", json.dumps(ROWS))
    assert digest["original_size"]["rows"] == 1000
    assert digest["notes"][0] == "text that holds JSON"
    long = json.dumps(ROWS * 30)
    digest = summarize_payload("x", long)
    assert digest["original_size"] == {"bytes": len(long), "rows": 30_000}


@promise("context:other-payloads")
def test_bytes_are_told_by_size_and_hash():
    digest = summarize_payload("image", b"\x00" * 3000)
    assert digest["original_size"]["bytes"] == 3000
    assert digest["sample"] == {"bytes": 3000, "sha256": hashlib.sha256(b"\x00" * 3000).hexdigest()}
    assert digest["truncated"]


@promise("context:whole")
def test_a_payload_that_fits_is_shown_whole_in_its_digest():
    digest = summarize_payload("x", {"a": [1, 2, 3]})
    assert digest["sample"] == {"a": [1, 2, 3]}
    assert not digest["truncated"]


@promise("context:whole")
def test_a_small_result_passes_whole_and_a_large_one_by_its_digest():
    assert digest_of_result("x", {"a": float("inf")}, "ref-1") == {"data": {"a": "Infinity"}, "ref": "ref-1"}
    assert digest_of_result("x", "é" * 1000, "ref-1")["data"] == "é" * 1000
    assert digest_of_result("x", "é" * 9000, "ref-1")["storage_ref"] == "ref-1"
    assert digest_of_result("x", {"a": 1}, "ref-1", whole_under=4)["storage_ref"] == "ref-1"
    assert len(canonical(digest_of_result("x", ROWS, "r" * 80))) <= 4000


@promise("context:refused")
@pytest.mark.parametrize(
    ("arguments", "fault"), [({"max_chars": 399}, "max_chars"), ({"purpose": "for_fun"}, "purpose")]
)
def test_what_cannot_be_done_is_refused(arguments, fault):
    with pytest.raises(ValueError, match=fault):
        summarize_payload("x", {}, **arguments)


@promise("context:20mb")
@pytest.mark.thorough
def test_twenty_megabytes_are_digested():
    rows = [{"id": n, "text": "words " * 30, "amount": n / 7} for n in range(90_000)]
    digest = summarize_payload("x", rows)
    assert digest["original_size"]["bytes"] > 18_000_000
    assert digest["aggregates"]["columns"]["id"]["sum"] == sum(range(90_000))


@promise("context:clean")
@given(JSON)
@settings(deadline=None)
def test_cleaning_is_total_strict_and_idempotent(value):
    cleaned = clean_json(value)
    assert json.loads(canonical(cleaned).encode()) == cleaned
    assert clean_json(cleaned) == cleaned


def nested_lists(depth):
    found = []
    for _ in range(depth - 1):
        found = [found]
    return found


@promise("context:clean")
@pytest.mark.parametrize(
    "value", [{"a": [[{"é": [1, 2.5, "ß", None, True, -(2**1000)]}], {}]}, nested_lists(100), "x", 1]
)
def test_what_is_json_already_is_not_built_anew(value):
    assert clean_json(value) is value


@promise("context:clean")
@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        (float("nan"), "NaN"),
        ("\ud800", "\ufffd"),
        ((1,), [1]),
        (1 << 2000, "a number of 2001 bits"),
        ({1: 2}, {"1": 2}),
        ({"\udc00": 2}, {"\ufffd": 2}),
        (nested_lists(97), None),
    ],
)
def test_what_is_no_json_is_found_at_any_depth(leaf, said):
    mended = clean_json({"a": [[{"b": [1, 2.5, "x", leaf]}]]})["a"][0][0]["b"]
    assert mended[:3] == [1, 2.5, "x"]
    assert (
        mended[3] == said
        if said is not None
        else canonical(mended).endswith('"nested too deeply to be shown"' + "]" * 96)
    )


@promise("context:clean")
def test_values_of_python_become_json():
    class Colour(Enum):
        RED = "red"

    @dataclass
    class Point:
        x: int

    class Broken:
        def __repr__(self):
            raise RuntimeError

    loop = {}
    loop["again"] = loop
    assert clean_json(
        {
            1: (1, 2),
            "1": {"b", "a"},
            None: Colour.RED,
            "point": Point(3),
            "day": date(2026, 1, 2),
            "money": Decimal("1.50"),
            "nan": float("nan"),
            "half": "\ud800x",
            "fault": ValueError("why"),
            "odd": Broken(),
            "loop": loop,
        }
    ) == {
        "1": [1, 2],
        "1#2": ["a", "b"],
        "null": "red",
        "point": {"x": 3},
        "day": "2026-01-02",
        "money": "1.50",
        "nan": "NaN",
        "half": "\ufffdx",
        "fault": "ValueError: why",
        "odd": "a Broken",
        "loop": {"again": "nested too deeply to be shown"},
    }


@promise("context:clean")
def test_deep_nesting_is_cut():
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert canonical(clean_json(deep)).count("[") <= 101
    assert summarize_payload("x", deep)
