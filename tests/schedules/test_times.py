"""When Temporal starts the runs of a cron line, as the documentation says."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest

from backstay.errors import TaskInvalid
from tests.requirements import promise
from tests.schedules.office import asked_schedule, some


async def matching(office, cron, first, last, zone="UTC"):
    """Return when Temporal would start the runs of a cron line from one day to another, in its time zone."""
    name, client = some("times"), office.engine.client
    await office.keeping.add(
        asked_schedule(name, cron=cron) | {"time_zone": zone}, office.engine.settings.approver_key_bytes
    )
    request = ListScheduleMatchingTimesRequest(
        namespace=client.namespace, schedule_id=f"{office.engine.settings.task_queue}-schedule-{name}"
    )
    request.start_time.FromDatetime(first)
    request.end_time.FromDatetime(last)
    found = await client.workflow_service.list_schedule_matching_times(request)
    await office.keeping.remove("schedule", name)
    return [at.ToDatetime(UTC).astimezone(ZoneInfo(zone)).strftime("%d %H:%M") for at in found.start_time]


@promise("schedules:cron-days")
@pytest.mark.parametrize("cron", ["0 9 1 * 1", "0 9 1,15 * mon-fri", "0 9 1-31 * 1"])
async def test_a_cron_line_that_restricts_both_fields_of_days_is_refused(office, cron):
    with pytest.raises(TaskInvalid, match=r"times\.cron: restricts both the day of the month .* add two schedules"):
        await office.schedule(some("both"), cron=cron)


@promise("schedules:cron-days")
async def test_the_days_of_a_cron_line_are_those_of_cron(office):
    june = datetime(2027, 6, 1, tzinfo=UTC), datetime(2027, 6, 15, tzinfo=UTC)
    assert await matching(office, "0 9 1 * *", *june) == ["01 09:00"]
    assert await matching(office, "0 9 * * 1", *june) == ["07 09:00", "14 09:00"]
    # By cron, too, a step over all days leaves the other field to decide.
    assert await matching(office, "0 9 */2 * 1", *june) == ["07 09:00"]


@promise("schedules:summer-time")
async def test_an_hour_that_clocks_skip_or_repeat_is_as_documented_and_the_hours_from_4_to_22_are_started_once(office):
    spring = datetime(2027, 3, 27, 12, tzinfo=UTC), datetime(2027, 3, 29, 12, tzinfo=UTC)
    autumn = datetime(2027, 11, 6, 12, tzinfo=UTC), datetime(2027, 11, 8, 12, tzinfo=UTC)
    assert await matching(office, "30 2 * * *", *spring, "Europe/Berlin") == ["29 02:30"]
    assert await matching(office, "30 1 * * *", *autumn, "America/New_York") == ["07 01:30", "07 01:30", "08 01:30"]
    assert await matching(office, "0 4 * * *", *spring, "Europe/Berlin") == ["28 04:00", "29 04:00"]
    assert await matching(office, "0 4 * * *", *autumn, "America/New_York") == ["07 04:00", "08 04:00"]
    # In Chile, the clocks are set at midnight.
    april = datetime(2027, 4, 3, 12, tzinfo=UTC), datetime(2027, 4, 5, 12, tzinfo=UTC)
    assert await matching(office, "59 22 * * *", *april, "America/Santiago") == ["03 22:59", "04 22:59"]
