"""A program is taken out of the fence in which a model writes it, and out of nothing else."""

import pytest

from activities.model.disguise import without_fence
from tests.requirements import promise

SOURCE = "async def solve():\n    return '```'"


@promise("plans:fence")
@pytest.mark.parametrize(
    "written",
    [
        "\n```python\n{}\n```\n",
        "````\n{}\n````",
        "~~~ py\n{}\n~~~",
        "Here it is:\n\n```python\n{}\n```\n\nIt returns a fence.",
        "It's `solve`:\n  ```\n{}\n  ```",
    ],
)
def test_a_program_is_taken_out_of_a_fence_of_any_form_and_the_words_around_it(written):
    assert without_fence(written.format(SOURCE)) == SOURCE


@promise("plans:fence")
@pytest.mark.parametrize(
    "source",
    [SOURCE, 'text = """\n```python\nsend()\n```\n"""\nreturn text', "```python\n```", "```python\nreturn 1", "~~~1"],
)
def test_a_fence_that_is_the_programs_own_or_has_no_end_stays(source):
    assert without_fence(source) == source
