"""The manifest of promises, held to both ways: no promise without a test or a reason, no test without its promise."""

import re

from tests.requirements import promise
from tests.requirements.__main__ import main
from tests.requirements.manifest import AREAS, HOUSE, areas, promised_by_test, promises, proofs, run_by_soak_only

NORMAL_LENGTH = 120


@promise("testing:names")
def test_every_promise_has_a_name_of_its_own_a_sentence_and_pages_that_exist():
    names = [each.name for area in areas() for each in area.promises]

    assert [name for name in names if not re.fullmatch(r"[a-z0-9-]+:[a-z0-9-]+", name)] == []
    assert [each.name for each in promises().values() if not each.text] == []
    assert [area.name for area in areas() if not area.docs] == []
    assert [page for area in areas() for page in area.docs if not (HOUSE / page).exists()] == []


@promise("testing:reasons")
def test_every_promise_has_a_test_or_a_reason_and_not_both():
    found = proofs()

    assert [each.name for each in promises().values() if bool(found[each.name]) == bool(each.deferred)] == []


@promise("testing:exist")
def test_every_promise_that_a_test_names_exists():
    lost = [f"{test} names {name}" for test, names in promised_by_test().items() for name in names]

    assert [each for each in lost if each.rpartition(" ")[2] not in promises()] == []


@promise("testing:one-promise")
def test_every_test_names_exactly_one_promise():
    wrong = [f"{test} names {', '.join(names) or 'none'}" for test, names in promised_by_test().items()]

    assert [line for line, names in zip(wrong, promised_by_test().values(), strict=True) if len(names) != 1] == []


@promise("testing:thorough")
def test_what_a_thorough_test_shows_is_shown_by_make_test_too():
    left_out = run_by_soak_only()
    thorough = left_out["thorough"]
    shown = {
        name: [test for test in tests if test not in thorough | left_out["soak"]] for name, tests in proofs().items()
    }

    assert thorough
    assert [test for test in sorted(thorough) if not shown[promised_by_test()[test][0]]] == []


@promise("testing:line-length")
def test_the_files_of_promises_have_lines_of_normal_length():
    long = [
        f"{path.name}:{number}"
        for path in sorted(AREAS.glob("*.yaml"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > NORMAL_LENGTH
    ]

    assert long == []


@promise("testing:feature")
def test_a_reason_names_a_feature_and_no_number():
    reasons = {each.name: each.deferred for each in promises().values() if each.deferred}

    assert {name: reason for name, reason in reasons.items() if re.search(r"#|\bissue\b|\d", reason)} == {}


@promise("testing:both-ways")
def test_the_table_is_printed_by_promise_and_by_test_and_filtered_by_a_word(capsys):
    def printed(*options: str) -> str:
        main(options)
        return capsys.readouterr().out

    name, test = "testing:both-ways", f"tests/test_requirements.py::{printed.__qualname__.partition('.')[0]}"
    text = promises()[name].text

    by_promise = printed("--word", name)
    assert f"{name}  {text}\n    {test}\n" in by_promise
    assert "undo:" not in by_promise
    assert f"{test}\n    {name}  {text}\n" in printed("--by", "test", "--word", name)
