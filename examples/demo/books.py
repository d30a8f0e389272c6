"""Read what was sent from the mailbox's own database, so that nobody has to trust backstay about it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

_HERE = Path(__file__).parent


class MailboxBooks:
    """Read the mailbox's database, without the mailbox server and without backstay."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def delivered(self) -> list[tuple[str, int, int]]:
        """Return each recipient with the numbers of mails sent to them and recalled."""
        return [(str(to), int(sent), int(recalled)) for to, sent, recalled in self._rows("delivered.sql")]

    def counted(self) -> dict[str, int]:
        """Return the number of requests by tool."""
        return {str(tool): int(requests) for tool, requests in self._rows("counted.sql")}

    def lines(self) -> Iterator[str]:
        """Yield what the database says, line by line."""
        rows = self.delivered()
        yield "The mailbox's own database says:"
        for to, sent, recalled in rows:
            yield f"  {to:<44} sent {sent}{f', recalled {recalled}' if recalled else ''}"
        requests = self.counted().get("send_email", 0)
        twice = sum(1 for _, sent, _ in rows if sent != 1)
        verdict = "every e-mail was sent once" if rows and not twice else f"{twice} were not sent exactly once"
        yield f"  {len(rows)} people, {requests} requests to send counted: {verdict}."

    def _rows(self, name: str) -> list[tuple[object, ...]]:
        if not self._path.exists():
            return []
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=20)) as connection:
            try:
                return connection.execute((_HERE / name).read_text(encoding="utf-8")).fetchall()
            except sqlite3.OperationalError:
                return []  # the mailbox has not created its tables yet
