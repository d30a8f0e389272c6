"""Write docs/schemas: the JSON Schema of everything that crosses the door. python -m docs.generate_schemas."""

from pathlib import Path

from backstay.approvals.approval import Approval, ApprovalRequest
from backstay.approvals.notice import Notice
from backstay.budgets.budget import Budget, TopUp
from backstay.frozen import Frozen
from backstay.task.event import Timeline
from backstay.task.plan import Plan
from backstay.task.result import Result
from backstay.task.status import Status
from backstay.task.task import Task
from gateways.terminal.schema import schema_text

PLACE = Path(__file__).parent / "schemas"
TAKEN: tuple[type[Frozen], ...] = (Task, Budget, Plan, Approval, TopUp)
"""What comes from outside: unknown fields are refused."""
GIVEN: tuple[type[Frozen], ...] = (Result, ApprovalRequest, Status, Timeline, Notice)
"""What goes out: fields may be added, so readers ignore what they do not know."""


def schemas() -> dict[str, str]:
    """Return the text of every schema by file name."""
    taken = {_name(noun): schema_text(noun) for noun in TAKEN}
    return taken | {_name(noun): schema_text(noun, "serialization") for noun in GIVEN}


def _name(noun: type[Frozen]) -> str:
    words = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in noun.__name__)
    return f"{words.lstrip('_')}.json"


def main() -> None:
    """Bring the folder up to date."""
    PLACE.mkdir(exist_ok=True)
    current = schemas()
    for stale in PLACE.glob("*.json"):
        if stale.name not in current:
            stale.unlink()
    for name, text in current.items():
        (PLACE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
