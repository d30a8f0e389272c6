from datetime import UTC, datetime

import pytest

from examples.mailbox.reminders import Reminders
from examples.mailbox.seed import seed
from examples.mailbox.statements import statements
from tests.engine import assert_no_task_failure, pending
from tests.requirements import promise
from tests.sizes import spread

TASK = "Remind every customer with an invoice overdue by more than 60 days, and tell me the total."


@promise("runs:task")
@pytest.mark.parametrize("dice", spread([11, 23, 37], 1))
async def test_recipients_and_total_are_those_of_an_sql_query_over_random_invoices(open_engine, tmp_path, dice):
    today = datetime.now(UTC).date()
    await seed(tmp_path / "mailbox.db", random_seed=dice, customers=9 + dice % 5, invoices=30 + dice, today=today)

    async with open_engine(Reminders(), env={"MAILBOX_TODAY": today.isoformat()}) as engine:
        handle = await engine.start({"text": TASK, "budget": {"max_steps": 20, "max_tool_calls": 60}})
        (request,) = await pending(handle)
        assert engine.mailbox.sent() == []
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        result = await handle.result()
        assert_no_task_failure(await handle.fetch_history())
        rows = engine.mailbox.rows(statements("overdue.sql")["overdue"], today=today.isoformat(), days=60)

    assert result["outcome"] == "completed"
    assert sorted(engine.mailbox.sent()) == sorted(row[0] for row in rows)
    assert engine.mailbox.requests("send_email") == len(rows) > 1
    assert result["raw_outputs"]["total"] == pytest.approx(sum(row[2] for row in rows), abs=0.005)
    assert sorted(result["raw_outputs"]["recipients"]) == sorted(row[0] for row in rows)
