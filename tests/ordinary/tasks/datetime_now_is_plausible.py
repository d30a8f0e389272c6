# result: {"recent": true, "same": true, "date": true, "forward": true, "monotonic": true, "year": true}
import time
from datetime import date, datetime, timedelta, timezone

started = time.perf_counter()
now = datetime.now(timezone.utc)
yesterday = now - timedelta(days=1)
elapsed = time.perf_counter() - started
return {
    "recent": now > datetime(2024, 1, 1, tzinfo=timezone.utc),
    "same": abs(time.time() - now.timestamp()) < 60,
    "date": date.today() >= yesterday.date(),
    "forward": elapsed >= 0,
    "monotonic": time.monotonic() <= time.monotonic(),
    "year": datetime.fromisoformat(now.isoformat()).year == now.year,
}
