# result: {"count": 4, "levels": {"ERROR": 2, "INFO": 1, "WARN": 1}, "masked": "slow request: <1s>", "words": ["one", "two", "three", "four"]}
import re
from collections import Counter

LOG = """
2024-03-01 12:00:01 ERROR [db] connection lost (attempt 1)
2024-03-01 12:00:05 INFO  [web] GET /index.html 200
2024-03-01 12:00:09 ERROR [db] connection lost (attempt 2)
2024-03-01 12:01:00 WARN  [web] slow request: 1532ms
"""

LINE = re.compile(
    r"""^(?P<date>\d{4}-\d{2}-\d{2})\s+   # the day
        (?P<time>[\d:]{8})\s+
        (?P<level>[A-Z]+)\s+
        \[(?P<source>\w+)\]\s
        (?P<text>.*)$""",
    re.VERBOSE | re.MULTILINE,
)


async def main():
    rows = [m.groupdict() for m in LINE.finditer(LOG)]
    levels = Counter(r["level"] for r in rows)
    masked = re.sub(r"\d+ms", lambda m: f"<{int(m.group()[:-2]) // 1000}s>", rows[-1]["text"])
    words = re.split(r"[,;\s]+", "one, two;three  four")
    return {"count": len(rows), "levels": dict(levels), "masked": masked, "words": words}
