"""Time as a program sees it: a clock that depends on nothing but the journal, and the times of files.

The clock moves a little each time it is read, and with what the host says.
"""

import gc
import os
import time as real
from collections.abc import Callable, Iterable
from operator import attrgetter
from types import GenericAlias, ModuleType
from typing import Any, Self

from sandbox.guest.programs.errors import DeadlineExceeded

_TICK_NS = 1000
_ATOMIC = 11
_LOCALTIME, _GMTIME, _CTIME, _ASCTIME, _STRFTIME = real.localtime, real.gmtime, real.ctime, real.asctime, real.strftime
_REPLACED = (
    "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns thread_time"
    " thread_time_ns clock_gettime clock_gettime_ns sleep localtime gmtime ctime asctime strftime"
)
_DAY_NS = 86_400 * 10**9
_SETS = (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks)
_SHOWN = 10
_NAME = attrgetter("name")
_IN_SEQUENCE = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size")


class Clock:
    """Stand in for the functions of the module time, under their names."""

    def __init__(self) -> None:
        """Begin at zero, so that what is imported before the program starts always sees the same time."""
        self._ns = 0
        self._start_ns = 0
        self._given_ns: int | None = None
        self._looks = 0

    def start(self, now: float, given_s: float | None = None) -> None:
        """Set the time at which the program starts, and for how long it may sleep: None sets no end."""
        self._ns = self._start_ns = _whole(now)
        self._given_ns = None if given_s is None else _whole(given_s)
        self._looks = 0

    def move(self, now: float) -> None:
        """Go to a time that the host says; never back."""
        self._ns = max(self._ns, _whole(now))

    def jump(self, elapsed: float) -> None:
        """Go to the given seconds after the start; never back. Raises DeadlineExceeded."""
        self._ns = max(self._ns, self._start_ns + _whole(elapsed))
        self._check_deadline()

    @property
    def start_ns(self) -> int:
        """Return the time at which the program started."""
        return self._start_ns

    def tick(self) -> None:
        """Let a moment pass."""
        self._ns += _TICK_NS

    def elapsed(self) -> float:
        """Return the seconds since the start without looking at the clock."""
        return (self._ns - self._start_ns) / 1e9

    def install(self) -> None:
        """Replace the functions of the module time, through which nearly everything else asks."""
        for name in _REPLACED.split():
            setattr(real, name, getattr(self, name))
        os.times = self.times

    def install_resource(self, module: ModuleType) -> None:
        """Tell of resources only what is the same in every run: processor time, as this clock counts it."""
        kind: Any = vars(module)["struct_rusage"]

        def getrusage(_: int, /) -> Any:
            """Return what was used."""
            return kind((self.process_time(), 0.0, *[0] * 14))

        vars(module)["getrusage"] = getrusage

    def install_datetime(self, module: ModuleType) -> None:
        """Replace the two methods of datetime that ask the kernel; its others ask the module time."""

        def now(cls: Any, tz: Any = None) -> Any:
            """Return the current time."""
            return cls.fromtimestamp(self.time(), tz)

        def utcnow(cls: Any) -> Any:
            """Return the current time in UTC, without saying so."""
            return cls.utcfromtimestamp(self.time())

        # The class is built in and takes no assignments, except from whoever asks the collector for its dictionary.
        # A subclass in its place would show in type(), repr() and isinstance().
        methods: dict[str, Any] = gc.get_referents(module.datetime.__dict__)[0]
        methods["now"] = classmethod(now)
        methods["utcnow"] = classmethod(utcnow)

    def time_ns(self) -> int:
        """Return the current time in nanoseconds since 1970."""
        self._looks += 1
        self._ns += _TICK_NS
        return self._ns

    def time(self) -> float:
        """Return the current time in seconds since 1970."""
        return self.time_ns() / 1e9

    def monotonic_ns(self) -> int:
        """Return the nanoseconds since the program started."""
        return self.time_ns() - self._start_ns

    def monotonic(self) -> float:
        """Return the seconds since the program started."""
        return self.monotonic_ns() / 1e9

    perf_counter_ns = monotonic_ns
    perf_counter = monotonic

    def process_time_ns(self) -> int:
        """Return the time spent looking at clocks, the only work whose duration is the same in every run."""
        self.time_ns()
        return self._looks * _TICK_NS

    def process_time(self) -> float:
        """Return the same in seconds."""
        return self.process_time_ns() / 1e9

    thread_time_ns = process_time_ns
    thread_time = process_time

    def times(self) -> os.times_result:
        """Return the same beside the seconds since the program started."""
        return os.times_result((self.process_time(), 0.0, 0.0, 0.0, self.monotonic()))

    def clock_gettime_ns(self, clock: int) -> int:
        """Return the nanoseconds of one of the kernel's clocks."""
        return self.time_ns() if clock in (real.CLOCK_REALTIME, _ATOMIC) else self.monotonic_ns()

    def clock_gettime(self, clock: int) -> float:
        """Return the seconds of one of the kernel's clocks."""
        return self.clock_gettime_ns(clock) / 1e9

    def sleep(self, seconds: float) -> None:
        """Let time pass without waiting for it. Raises DeadlineExceeded."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self._ns += _whole(seconds)
        self._check_deadline()

    def _check_deadline(self) -> None:
        if self._given_ns is not None and self._ns - self._start_ns > self._given_ns:
            raise DeadlineExceeded(f"it slept past the {self._given_ns / 1e9:g} s that it was given")

    def localtime(self, seconds: float | None = None) -> real.struct_time:
        """Convert seconds since 1970, or now, to local time."""
        return _LOCALTIME(self.time() if seconds is None else seconds)

    def gmtime(self, seconds: float | None = None) -> real.struct_time:
        """Convert seconds since 1970, or now, to UTC."""
        return _GMTIME(self.time() if seconds is None else seconds)

    def ctime(self, seconds: float | None = None) -> str:
        """Say seconds since 1970, or now, in words."""
        return _CTIME(self.time() if seconds is None else seconds)

    def asctime(self, *given: Any) -> str:
        """Say a time tuple, or now, in words."""
        return _ASCTIME(*given or (self.localtime(),))

    def strftime(self, layout: str, *given: Any) -> str:
        """Say a time tuple, or now, as the layout wants it."""
        return _STRFTIME(layout, *given or (self.localtime(),))


class FolderEntry:
    """Stand in for an entry of a folder, which asks the kernel without the module os."""

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, real: "os.DirEntry[Any]", told: Callable[[os.stat_result], os.stat_result]) -> None:
        """Wrap an entry; its facts are told as those of files are."""
        self._real = real
        self._told = told

    def __getattr__(self, name: str) -> Any:
        """Return what does not depend on the machine."""
        return getattr(self._real, name)

    def __fspath__(self) -> Any:
        """Return the path."""
        return self._real.path

    def __reduce_ex__(self, version: Any) -> Any:
        """Refuse to be copied, as the entry does."""
        return self._real.__reduce_ex__(version)

    def __repr__(self) -> str:
        """Return it as the entry does."""
        return repr(self._real)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the facts of the file."""
        return self._told(self._real.stat(follow_symlinks=follow_symlinks))


class FolderEntries:
    """Stand in for the iterator over the entries of a folder."""

    def __init__(self, entries: Iterable[FolderEntry]) -> None:
        """Give out these."""
        self._left = iter(entries)

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> FolderEntry:
        """Return the next entry."""
        return next(self._left)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Give out no more."""
        self._left = iter(())


class FileTimes:
    """Stand in for the functions that ask the kernel about a file."""

    def __init__(self, clock: Clock) -> None:
        """Take the program's start from this clock."""
        self._clock = clock
        self._image = os.lstat("/").st_dev
        # Nothing has been written yet: this is when the jail was made, by the kernel's clock. The run's clock may be
        # anywhere else.
        self._made_ns = os.lstat("/tmp").st_ctime_ns  # noqa: S108 - the jail has one of its own

    def install(self) -> None:
        """Replace them, and wherever the module says what they can do."""
        replaced = {name: self._replaced(getattr(os, name)) for name in ("stat", "lstat", "fstat")}
        replaced |= {"scandir": self._scanning(os.scandir), "listdir": _sorting(os.listdir)}
        for name, mine in replaced.items():
            real = getattr(os, name)
            mine.__name__, mine.__doc__ = real.__name__, real.__doc__
            setattr(os, name, mine)
            for able in _SETS:
                if real in able:
                    able.add(mine)
        setattr(os, "DirEntry", FolderEntry)  # noqa: B010 - checkers know the class of the real ones only

    def _replaced(self, real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def asked(*given: Any, **named: Any) -> os.stat_result:
            return self._told(real(*given, **named))

        return asked

    def _scanning(self, real: Callable[..., Any]) -> Callable[..., FolderEntries]:
        def scan(path: Any = None) -> FolderEntries:
            with real(path) as entries:
                # Folders of the image lie on a disk of the machine, which has an order of its own.
                return FolderEntries(FolderEntry(entry, self._told) for entry in sorted(entries, key=_NAME))

        return scan

    def _told(self, facts: os.stat_result) -> os.stat_result:
        """Return the facts with times that are the same in every run; files that a program dated far back stay."""
        start, inside = self._clock.start_ns, facts.st_dev == self._image
        recent = min(start, self._made_ns) - _DAY_NS
        known = {name: getattr(facts, name) for name in dir(facts) if name.startswith("st_")}
        modified = known["st_mtime_ns"]
        accessed = modified if inside else known["st_atime_ns"]
        for kind, age in (("mtime", modified), ("atime", accessed), ("ctime", start)):
            known[f"st_{kind}_ns"] = start if age > recent else age
            known[f"st_{kind}"] = known[f"st_{kind}_ns"] / 1e9
        whole = [known[f"st_{kind}_ns"] // 10**9 for kind in ("atime", "mtime", "ctime")]
        # Devices are numbered by the machine as they come.
        shown = [*facts[:2], 1 if inside else 2, *facts[3 : _SHOWN - 3], *whole]
        # From 3.13 on, what is in the sequence may not be named again.
        return os.stat_result(shown, {name: value for name, value in known.items() if name not in _IN_SEQUENCE})


def _sorting(real: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def names(path: Any = None) -> list[Any]:
        return sorted(real(path))

    return names


def _whole(seconds: float) -> int:
    """Return nanoseconds in whole microseconds, which a float of today's date still tells apart."""
    return round(seconds * 1e6) * 1000
