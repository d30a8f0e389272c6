"""How many steps and tokens a coding task takes when a model reads what it is shown: in a copy of a real package."""

import json
import sys
from importlib.metadata import files

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.engine import ended, engine, share_images
from tests.requirements import promise

PACKAGE = "iniconfig"
BEFORE = {"steps": 18, "bytes": 458_269}
"""What the same task took when text of 2 KB was shown by its first 160 characters."""

EDIT = {
    "path": f"{PACKAGE}/exceptions.py",
    "old": "class ParseError(Exception):",
    "new": "class ParseError(ValueError):",
}
SEEN = "grep -n 'def \\|raise \\|class \\|import ' iniconfig/*.py"
STEPS = (
    ("fs__list_directory", {"path": PACKAGE}),
    ("fs__read_file", {"path": f"{PACKAGE}/__init__.py"}),
    ("fs__read_file", {"path": f"{PACKAGE}/_parse.py"}),
    ("shell__run", {"command": f"{SEEN}; sed -n '1,80p' iniconfig/_parse.py"}),
    ("fs__read_file", {"path": f"{PACKAGE}/exceptions.py"}),
    ("fs__edit_file", EDIT),
    ("shell__run", {"command": "cat -n iniconfig/__init__.py"}),
    ("fs__write_file", {"path": "test_errors.py", "content": "from iniconfig import ParseError\n"}),
    ("fs__read_file", {"path": f"{PACKAGE}/_parse.py"}),
)


class Coder:
    """Make one step after the other, and go on only when all of an answer was read."""

    def __init__(self):
        """Begin with nothing read."""
        self.seen: dict[str, str] = {}

    def __call__(self, conversation):
        answers = [call for call in conversation.calls() if call.answered and call.name != "search_tools"]
        steps = [call for call in answers if call.name != "read_result"]
        if steps:
            self._read(answers)
            if (more := self._left(steps[-1])) is not None:
                return Reply(calls=[("read_result", more)])
        if len(steps) < len(STEPS):
            return Reply(calls=[STEPS[len(steps)]])
        return Reply(calls=[("finish", {"summary": "done", "success": True})])

    def _read(self, answers):
        last, answer = answers[-1], answers[-1].answer
        if last.name == "read_result":
            part = answer.get("data", answer)
            key = last.arguments["ref"]
            self.seen[key] = self.seen.get(key, "") + (part if isinstance(part, str) else part["text"])
            self.done = isinstance(part, str) or not part["has_more"]
        else:
            self.done = answer.get("data") is not None and not answer.get("truncated")

    def _left(self, call):
        if self.done:
            return None
        ref = call.answer["storage_ref"]
        path = "content" if call.name == "fs__read_file" else "stdout"
        return {"ref": ref, "path": path, "offset": len(self.seen.get(ref, ""))}


@pytest_asyncio.fixture
async def opened(temporal, tmp_path, rooms):
    share_images(tmp_path / "home")
    toolbox = tmp_path / "toolbox.json"
    toolbox.write_text("{}", encoding="utf-8")
    policy = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
    async with engine(temporal, tmp_path, Coder(), policy=policy, workspaces=rooms, toolbox=toolbox) as found:
        yield found, rooms


@promise("context:tokens")
@pytest.mark.thorough
async def test_a_coding_task_takes_at_most_seven_tenths_of_the_steps_and_no_more_tokens(opened):
    found, rooms = opened
    place = rooms / "repository"
    (place / PACKAGE).mkdir(parents=True)
    for file in files(PACKAGE) or ():
        if file.parts[0] == PACKAGE and file.suffix == ".py":
            (place / file).write_bytes(file.locate().read_bytes())
    task = {"text": "Let ParseError be a ValueError.", "workspace": "repository", "filesystem": True, "shell": True}
    result = await ended(await found.start(task | {"budget": {"max_steps": 40}}))
    assert result["outcome"] == "completed", result["error"]
    assert "ParseError(ValueError)" in (place / EDIT["path"]).read_text(encoding="utf-8")
    told = sum(len(json.dumps(request["messages"], ensure_ascii=False)) for request in found.model.requests)
    print(json.dumps({"steps": result["usage"]["steps"], "bytes": told}), file=sys.stderr)  # noqa: T201 - the figures
    assert result["usage"]["steps"] == len(STEPS) + 1
    assert result["usage"]["steps"] <= 0.7 * BEFORE["steps"]
    assert told <= BEFORE["bytes"]
