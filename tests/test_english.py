"""The check of wordings, as `make lint` runs it."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.requirements import promise

HOUSE = Path(__file__).resolve().parents[1]


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the check on the pages and the code in a folder."""
    command = [sys.executable, "-m", "tests.english", "--in", str(folder)]
    return subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=False, timeout=240)


def planted(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True, parents=True)
    (folder / name).write_text(textwrap.dedent(text).lstrip("\n"))


FOUND = {
    "What the model wrote is cut.": "What",
    "Whoever presses decides.": "Whoever",
    "It takes each hidden sign out.": "hidden sign",
    "It returns a text.": "a text",
    "This is no number.": "is no number",
    "It waits so many seconds.": "so many",
    "The rest stands in the store.": "stands in",
    "Nothing shall run.": "shall",
    "The rest is said here.": "is said",
}
TEMPLATE = "gateways/web/templates/a.html:2"
FOUND_IN_PAGES = {
    "This page is for whoever starts runs.": "for whoever",
    "It is read anew.": "anew",
    "It may run unasked.": "unasked",
    "The fault was mended.": "mended",
    "It asks, also where a rule allows it.": "also where",
    "It was found where it stood.": "stood",
    "It has the very same hash.": "the very same",
    "It holds for one call.": "holds for",
}
"""Pages are for users; comments are left alone."""


@promise("docs:plain-words")
@pytest.mark.parametrize("sentence", FOUND)
def test_a_wording_is_found_in_a_page_a_docstring_a_comment_a_message_and_a_template(tmp_path, sentence):
    planted(tmp_path, "docs/page.md", f"# A page\n\nIt is short. {sentence}\n")
    code = f"""
        def f() -> None:
            \"\"\"Do it.

            {sentence}
            \"\"\"
            # Here.
            # {sentence}
            fail(f"{{1}}; {sentence}")
        """
    planted(tmp_path, "store/rows.py", code)
    planted(tmp_path, "gateways/web/templates/a.html", f"<p>{{% if a %}}\n{sentence}\n{{% endif %}}</p>\n")
    done = checked(tmp_path)

    assert done.returncode == 1
    places = ("docs/page.md:3", "store/rows.py:4", "store/rows.py:7", "store/rows.py:8", TEMPLATE)
    found = [line.partition(": write ")[0] for line in done.stdout.splitlines()]
    assert found == [f'{place}: "{FOUND[sentence]}"' for place in places]


@promise("docs:plain-words")
@pytest.mark.parametrize("sentence", FOUND_IN_PAGES)
def test_a_wording_that_users_read_twice_is_found_in_a_page_and_not_in_a_comment(tmp_path, sentence):
    planted(tmp_path, "docs/page.md", f"# A page\n\nIt is short. {sentence}\n")
    planted(tmp_path, "store/rows.py", f"# {sentence}\n")
    found = [line.partition(": write ")[0] for line in checked(tmp_path).stdout.splitlines()]
    assert found == [f'docs/page.md:3: "{FOUND_IN_PAGES[sentence]}"']


@promise("docs:plain-words")
def test_code_quotes_questions_and_labels_are_left_alone(tmp_path):
    page = """
        # What stands in the store

        What is kept? Write `a text` and see [how](what-stands-in.md).
        What to know:

        ```python
        # What is no number stands in a text.
        ```

        People sign in, a key signs, and a dollar sign is doubled; there is no folder.
        """
    planted(tmp_path, "README.md", page)
    code = """
        WORDS = "a text"
        LIMIT = 3
        \"\"\"What a client sends at most.\"\"\"
        """
    planted(tmp_path, "worker.py", code)
    done = checked(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


@promise("docs:plain-words")
def test_the_pages_code_and_templates_of_this_repository_are_plain():
    assert checked(HOUSE).stdout == ""
