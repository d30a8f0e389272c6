# result: {"local": {"America/New_York": "2024-03-29T10:00:00-04:00", "Asia/Tokyo": "2024-03-29T23:00:00+09:00", "Australia/Sydney": "2024-03-30T01:00:00+11:00", "UTC": "2024-03-29T14:00:00+00:00"}, "utc_hours": [14, 14, 13, 13], "offset": -10800.0, "name": "CET"}
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo


async def main():
    start = datetime(2024, 3, 29, 15, 0, tzinfo=ZoneInfo("Europe/Berlin"))
    cities = ["America/New_York", "Asia/Tokyo", "Australia/Sydney", "UTC"]
    local = {c: start.astimezone(ZoneInfo(c)).isoformat() for c in cities}
    # the clocks change in Berlin on 31 March
    after = [(start + timedelta(days=d)).astimezone(ZoneInfo("UTC")).hour for d in (0, 1, 2, 3)]
    winter = datetime(2024, 1, 1, tzinfo=ZoneInfo("America/Sao_Paulo")).utcoffset().total_seconds()
    return {"local": local, "utc_hours": after, "offset": winter, "name": start.tzname()}
