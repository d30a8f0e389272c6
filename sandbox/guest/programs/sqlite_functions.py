"""SQLite databases whose time and random numbers are those of the program, not those of the machine."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from sandbox.guest.programs.clock import Clock
from sandbox.guest.programs.randomness import SeededRandomness

# By name: which of the arguments is the time, for those that were given no time take the current one.
_TIMED = {"date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1}
_CURRENT = {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"}


class SqliteFunctions:
    """Replace the functions of SQL that ask the machine, in every connection when it is opened."""

    def __init__(self, clock: Clock, randomness: SeededRandomness) -> None:
        """Answer from these two."""
        self._clock = clock
        self._randomness = randomness
        self._open: Any = None
        self._plain: Any = None

    def install(self, module: ModuleType) -> None:
        """Prepare what the module connects to."""
        self._open = vars(module)["connect"]

        def connect(*given: Any, **named: Any) -> Any:
            """Open a connection to the SQLite database."""
            connection = self._open(*given, **named)
            connection.create_function("random", 0, self._random)
            connection.create_function("randomblob", 1, self._randomblob)
            # They are constant within a statement, as SQL wants them, and allowed where only such functions are.
            for name, place in _TIMED.items():
                connection.create_function(name, -1, self._timed(name, place), deterministic=True)
            for name, like in _CURRENT.items():
                connection.create_function(name, 0, self._timed(like, 0), deterministic=True)
            return connection

        vars(module)["connect"] = connect

    def _random(self) -> int:
        return int.from_bytes(self._randomness.urandom(8), "little", signed=True)

    def _randomblob(self, size: Any) -> bytes:
        return self._randomness.urandom(max(1, int(size or 0)))

    def _timed(self, name: str, place: int) -> Callable[..., Any]:
        """Return a function of SQL that is given the program's time wherever it would ask for the machine's."""

        def timed(*given: Any) -> Any:
            if len(given) == place:
                given = (*given, "now")
            if len(given) > place and isinstance(given[place], str) and given[place].lower() == "now":
                given = (*given[:place], self._now(), *given[place + 1 :])
            if self._plain is None:
                self._plain = self._open(":memory:", check_same_thread=False)
            marks = ",".join("?" * len(given))
            return self._plain.execute(f"SELECT {name}({marks})", given).fetchone()[0]

        return timed

    def _now(self) -> str:
        now = self._clock.time_ns()
        return f"{self._clock.strftime('%F %T', self._clock.gmtime(now // 10**9))}.{now // 10**6 % 1000:03}"
