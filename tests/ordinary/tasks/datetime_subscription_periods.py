# result: {"renewals": ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30", "2024-05-31"], "parsed": "2024-03-07T14:05:00+00:00", "timestamp": 1709820300.0, "weekday": "Thursday, March 07", "days": 12220, "iso_week": [2025, 1, 1], "noon": "2024-01-30 00:00:00"}
from datetime import date, datetime, time, timedelta, timezone


def add_months(day, months):
    month = day.month - 1 + months
    year, month = day.year + month // 12, month % 12 + 1
    last = (date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)).day
    return date(year, month, min(day.day, last))


async def main():
    first = date(2024, 1, 31)
    renewals = [add_months(first, n).isoformat() for n in range(5)]
    parsed = datetime.strptime("07/Mar/2024 14:05", "%d/%b/%Y %H:%M").replace(tzinfo=timezone.utc)
    age = date(2024, 6, 1) - date(1990, 12, 17)
    return {
        "renewals": renewals,
        "parsed": parsed.isoformat(),
        "timestamp": parsed.timestamp(),
        "weekday": parsed.strftime("%A, %B %d"),
        "days": age.days,
        "iso_week": list(date(2024, 12, 30).isocalendar()),
        "noon": str(datetime.combine(first, time(12)) - timedelta(hours=36)),
    }
