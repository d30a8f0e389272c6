from tests.mutation.choosing import Mutant, choose, mutants_of, place_of
from tests.requirements import promise

BEFORE = '''
"""A module."""

MOST = 3


def kept(values, most):
    """Keep some."""
    found = [value for value in values if value < most]
    found.sort()  # in order
    name = f"{len(found) > 1}"
    if name in found and found[0] is not None:
        return True
    return found
'''
AFTER = BEFORE.replace("    found.sort()  # in order\n", "").replace("    return found", "        return found")


@promise("layout:mutants")
def test_mutants_are_turned_comparisons_other_constants_and_statements_left_out():
    found = {(mutant.kind, mutant.mutated) for mutant in mutants_of("room", BEFORE)}

    assert found == {
        ("constant", "MOST = 4"),
        ("comparison", "found = [value for value in values if value <= most]"),
        ("removal", "pass"),
        ("comparison", "if name not in found and found[0] is not None:"),
        ("comparison", "if name in found and found[0] is None:"),
        ("constant", "if name in found and found[1] is not None:"),
        ("constant", "return False"),
    }


@promise("layout:mutants")
def test_the_lines_of_mutants_stand_once_in_both_commits():
    twice = BEFORE + "\n\nMOST = 3\n"
    chosen = choose({"room": {"old.py": BEFORE}}, {"room": {"new.py": AFTER}}, count=100, seed=1)
    again = choose({"room": {"old.py": twice}}, {"room": {"new.py": AFTER}}, count=100, seed=1)

    assert {mutant.line for mutant in chosen} >= {"MOST = 3", "return found", "return True"}
    assert "found.sort()  # in order" not in {mutant.line for mutant in chosen}
    assert "MOST = 3" not in {mutant.line for mutant in again}
    assert "return True" in {mutant.line for mutant in again}


@promise("layout:mutants")
def test_the_same_seed_chooses_the_same_mutants_evenly_from_rooms_and_kinds():
    code = {"first": {"a.py": BEFORE}, "second": {"b.py": BEFORE}}

    chosen = choose(code, code, count=5, seed=3)

    assert chosen == choose(code, dict(reversed(code.items())), count=5, seed=3)
    assert [mutant.room for mutant in chosen] == ["first", "second", "first", "second", "first"]
    assert [mutant.kind for mutant in chosen] == ["comparison", "comparison", "constant", "constant", "removal"]
    assert chosen != choose(code, code, count=5, seed=4)


@promise("layout:mutants")
def test_a_mutant_is_put_where_its_line_stands_with_the_space_before_it():
    mutant = Mutant("room", "constant", "return True", "return False")

    path, text = place_of(mutant, {"other.py": "PLACE = 1\n", "new.py": AFTER})

    assert path == "new.py"
    assert text == AFTER.replace("return True", "return False")
